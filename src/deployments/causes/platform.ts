/** Causes that lie in the configuration of the service, its cluster or its machine. */
import { causesOf } from '#deployments/causes/cause.ts';

export const VARIABLE_CAUSES = causesOf(['VARIABLES_INVALID'], {
  VARIABLE_SOURCE_GONE: {
    summary: 'A variable is an alias or an override of one that is no longer there.',
    fix: 'Delete the variable, or bring its source back.',
    message: /is an alias of /,
  },
  VARIABLE_CYCLE: {
    summary: 'Variables refer to each other in a circle.',
    fix: 'Give one of the variables that the message names a value of its own.',
    message: /circle|cycle|refers? to (?:itself|each other)/i,
  },
  VARIABLE_FILE_PATH: {
    summary: 'Two file variables have the same path.',
    fix: 'Give one of them another mount path.',
    message: /are different files with the path /,
  },
  SECRET_MANAGER: {
    summary: 'An external secret could not be read from its secret manager.',
    fix: 'Check the name of the secret, and the credentials and the address of the secret manager.',
    message: /external secret|secret manager/i,
  },
});

export const CLUSTER_CAUSES = causesOf(['CLUSTER_UNABLE', 'CLUSTER_UNAVAILABLE', 'FAILED', 'NOT_READY'], {
  ENGINE_AWAY: {
    summary: 'The container engine of the machine does not answer.',
    fix: 'Start the engine, or set DOCKER_HOST to one that runs.',
    message: /No Docker Engine or Podman|container engine (?:does|did) not answer/,
  },
  CLUSTER_GONE: {
    summary: 'The cluster of the environment is no longer there.',
    fix: 'Move the environment to another cluster.',
    message: /The cluster is gone/,
  },
  MACHINE_DISK: {
    summary: 'The disk of the machine is full.',
    fix: 'Have the operator free some: quarterdeck_disk_bytes in /metrics says what takes it.',
    message: /no space left|\bENOSPC\b|\bEDQUOT\b/i,
  },
  ADDRESSES_USED_UP: {
    summary: 'The machine or the environment has no address or port left for another instance.',
    fix: 'Remove environments or instances that are no longer needed, or widen the address pool.',
    message:
      /addresses of the environment are taken|networks for environments .* are taken|address pool .* is used up|no address left|No port between/,
  },
  FOREIGN_OBJECT: {
    summary: 'Something of the same name is there that does not belong to the service.',
    fix: 'Remove or rename it: nothing is taken over that others have made.',
    message: /is there that (?:is not ours|does not belong)/,
  },
  RELEASE_OLD: {
    summary: 'The release was made in a way that this cluster no longer uses.',
    fix: 'Deploy the service again.',
    message:
      /This release was made by|was built for a machine in mode|No container of this release is left|Nothing of the service is here/,
  },
  NO_PROGRESS: {
    summary: 'A step of the deployment showed no progress and was ended.',
    fix: 'Look whether the engine, the cluster or a program of the step hangs, and deploy again.',
    message: /showed no progress for \d+ seconds/,
  },
  NOT_THERE_IN_TIME: {
    summary: 'Something that the step needs did not come in time, such as an answer of a secret manager.',
    fix: 'Check the system that the service asks for it, and deploy again.',
    message: /was not there within \d+ seconds/,
  },
  NOT_RUNNING: {
    summary: 'The service is not running, and the request needs an instance of it.',
    fix: 'Deploy the service first.',
    message: /is not running: deploy it first/,
  },
});

export const DISK_CAUSES = causesOf(['DISK_LIMIT'], {
  DISK_ALLOWANCE: {
    summary: 'The organization takes as much disk of the machine as the operator allows.',
    fix: 'Remove services or storage that are no longer needed, or ask the operator for more.',
    message: /./,
  },
});

export const EXECUTION_CAUSES = causesOf(['EXECUTION_FAILED'], {
  COMMAND_TIME: {
    summary: 'The command took longer than it may.',
    fix: 'Raise the time limit of the job, or make the command shorter.',
    message: /took longer than \d+ seconds/,
  },
  COMMAND_LOST: {
    summary: 'The end of the command is not known, because its machine was restarted or what it left was removed.',
    fix: 'Look what the command did before you run it again.',
    message: /its end can't be known/,
  },
  COMMAND_KILLED: {
    summary: 'The command was killed from outside.',
    fix: 'Look whether it takes more memory than it may; Linux kills it then, without a word of its own.',
    message: /was ended by SIGKILL|with status 137\b/,
    output: /^unshare: sigprocmask unblock failed/,
  },
  COMMAND_FAILED: {
    summary: 'The command ended with an error of its own.',
    fix: 'Read its last lines, and run it with the same variables where you develop.',
    message: /ended with status \d|was ended by SIG/,
  },
});
