import { createHash, randomBytes } from 'node:crypto';
import type { TaskSpec, WorkloadIdentity } from '#runtimes/runtime.ts';
import type { ClusterObject, Job, Template } from './kinds.ts';
import { ANNOTATION, LABEL, ofService } from './labels.ts';
import { metadataOf } from './metadata.ts';
import { registryOf, templateOf, variablesOf, type SecretNames } from './objects.ts';
import { isKept, KEPT_SECONDS, withKeeper } from './task-keeper.ts';

/** Reason for which we ended an execution: it was cancelled, its time was over, or it did not start in time. */
export type EndedBy = 'abort' | 'timeout' | 'start';

/** Seconds that an execution may wait until its command starts: for a node that is added, for an image that is pulled. */
export const START_SECONDS = 600;

/** Longest deadline that Kubernetes takes. */
const LONGEST_SECONDS = 2 ** 31 - 1;

/** Returns the name of an execution's Job: the same execution has the same one, so that the cluster creates it once. */
export function jobName({ identity, name }: Pick<TaskSpec, 'identity' | 'name'>): string {
  const whole = `${identity.serviceId} ${identity.generation} ${name}`;
  return `task-${name}-${createHash('sha256').update(whole).digest('hex').slice(0, 16)}`;
}

/** Returns new names for the Secrets of a Job: what a Job that was replaced leaves is not taken for that of its successor. */
export function newSecretNames(spec: TaskSpec): SecretNames {
  const name = `${jobName(spec)}-${randomBytes(4).toString('hex')}`;
  return { variables: name, registry: `${name}-registry` };
}

/** Returns a selector of the objects of an execution. */
export const ofTask = ({ identity, name }: TaskSpec): string =>
  `${ofService(identity)},${LABEL.generation}=${identity.generation},${LABEL.task}=${name}`;

/** Returns a selector of the Jobs of a service. */
export const ofTasks = (identity: Pick<WorkloadIdentity, 'installation' | 'serviceId'>): string =>
  `${ofService(identity)},${LABEL.task}`;

/** Returns the Job of an execution, which is suspended until its Secrets are there. It starts one pod at most. */
export function jobOf(spec: TaskSpec, secrets: SecretNames): ClusterObject {
  const metadata = metadataOf(spec, jobName(spec), 'JOBS');
  const { metadata: ofPod, spec: pod } = podOf(spec, secrets);
  // Where nobody follows the execution the node ends it: the time of a command begins later than that of its pod.
  const longest = spec.timeoutSeconds + START_SECONDS + (isKept(spec) ? KEPT_SECONDS : 0);
  const guard = Math.min(longest, LONGEST_SECONDS);
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...labelsOf(spec) },
      annotations: { ...metadata.annotations, [ANNOTATION.name]: spec.displayName },
    },
    spec: {
      suspend: true,
      completions: 1,
      parallelism: 1,
      backoffLimit: 0,
      podReplacementPolicy: 'Failed',
      template: {
        metadata: { ...ofPod, labels: { ...ofPod.labels, ...labelsOf(spec) } },
        spec: { ...pod, restartPolicy: 'Never', activeDeadlineSeconds: guard },
      },
    },
  };
}

/** Returns the template of an execution's pod. Its output file is the node's last message, unless a container keeps it. */
function podOf(spec: TaskSpec, secrets: SecretNames): Template {
  const of = (parts: Record<string, unknown>) => templateOf(spec, secrets, spec.gracePeriodSeconds, parts);
  if (isKept(spec)) return withKeeper(spec, of({}));
  return of(spec.outputPath === null ? {} : { terminationMessagePath: spec.outputPath });
}

/** Returns the Secrets of an execution; they go with its Job. */
export function taskSecrets(spec: TaskSpec, names: SecretNames, { metadata }: Job): ClusterObject[] {
  const secrets = [
    ...(Object.keys(spec.environment).length + spec.files.length > 0 ? [variablesOf(spec, names.variables)] : []),
    ...(spec.registry ? [registryOf(spec, names.registry, spec.registry)] : []),
  ];
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: metadata.name, uid: metadata.uid };
  return secrets.map((secret) => ({
    ...secret,
    metadata: {
      ...secret.metadata,
      labels: { ...secret.metadata.labels, ...labelsOf(spec) },
      ownerReferences: [owner],
    },
  }));
}

const labelsOf = ({ identity, name }: TaskSpec): Record<string, string> => ({
  [LABEL.generation]: String(identity.generation),
  [LABEL.task]: name,
});

/** Returns the reason for which we ended an execution; null if we did not. */
export const endedBy = ({ metadata }: Job): EndedBy | null =>
  (metadata.annotations?.[ANNOTATION.endedBy] as EndedBy | undefined) ?? null;

/** Returns whether the command of a Job may have begun. One that was ended is suspended, too, where it had no pod. */
export const hasBegun = (job: Job): boolean => job.spec.suspend !== true || endedBy(job) !== null;
