/** Causes for which an instance does not get ready. The message shows them where the program writes nothing of use. */
import { causesOf } from '#deployments/causes/cause.ts';

export const START_CAUSES = causesOf(['NOT_READY'], {
  NO_ROOM: {
    summary: 'No node of the cluster has room for the instance.',
    fix: 'Lower CPU and memory of the service, or add a node.',
    message: /no node takes it|The cluster makes no pods/,
  },
  PORT_PUBLISHED: {
    summary: 'A port that the service publishes on the machine is taken.',
    fix: 'Publish another port, or end what listens there.',
    message: /^These ports cannot be published/,
  },
  KILLED: {
    summary: 'The program was ended by a signal.',
    fix: 'Look whether it takes more memory than it may; Linux kills it then, without a word of its own.',
    message: /\bSIGKILL\b|with status 137\b/,
    // Of the program that starts those of a host cluster.
    output: /^unshare: sigprocmask unblock failed/,
  },
  ENDED_WELL: {
    summary: 'The program ended by itself, without an error, though a service is to keep running.',
    fix: 'Start the server in the foreground; what is to end is a job.',
    message: /ended(?: \d+ times)?[^.\n]* (?:with|exited with) (?:status|code) 0\b|exited with (?:status |code )?0\b/,
  },
  ENDED_WITH_ERROR: {
    summary: 'The program ended with an error of its own.',
    fix: 'Read its last lines, and start it with the same variables where you develop.',
    message: /ended(?: \d+ times)?[^\n]* (?:status|code) \d|exited with (?:status |code )?\d|was ended by SIG/,
  },
  CHECK_STATUS: {
    summary: 'The health check got an answer that means failure.',
    fix: 'Correct the path of the check, or what the program says there: 200 to 399 is healthy.',
    message: /GET \S+ answered \d{3}|is not SERVING|HTTP probe failed with statuscode/,
  },
  CHECK_SILENT: {
    summary: 'The health check got no answer in time.',
    fix: 'Raise the time limit of the check, or answer it without waiting for other systems.',
    message: /no answer within|did not answer within|context deadline exceeded/,
  },
  NOT_LISTENING: {
    summary: 'The program runs, but does not listen on the port of the service.',
    fix: 'Listen on the port in the variable PORT, on all addresses (0.0.0.0) and not on localhost alone.',
    message:
      /listens neither on|port \d+: connect ECONNREFUSED|GET \S+: connect ECONNREFUSED|ended the connection at once|port \d+: .*refused/,
  },
  CHECK_COMMAND: {
    summary: 'The command of the health check says that the instance is not healthy.',
    fix: 'Run the command in a shell of the instance and read what it says.',
    message: /did not end within \d+ s|^[^\n]* \S+ ended with status \d/,
  },
  CHECK_FAILED: {
    summary: 'The checks of the instance did not pass in time.',
    fix: 'Read its last lines; raise the time to get ready if it only needs longer.',
    message:
      /its checks do not pass|was ready too briefly|has only just started|has not run for|its first check comes after|has not started yet/,
  },
});
