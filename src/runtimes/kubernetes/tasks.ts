import { setTimeout as sleep } from 'node:timers/promises';
import {
  RuntimeError,
  throwIfCancelled,
  type TaskContext,
  type TaskEnd,
  type TaskSpec,
  type WorkloadIdentity,
} from '#runtimes/runtime.ts';
import { apply, find, list, pathOf, remove, type Cluster } from './cluster.ts';
import { isConflict, unlessGone } from './errors.ts';
import type { Job } from './kinds.ts';
import { FIELD_MANAGER, LABEL, namespaceOf } from './labels.ts';
import { claimOf } from './objects.ts';
import { environmentPolicy } from './policies.ts';
import { ensureNamespace } from './submit.ts';
import { awaitEnd } from './task-end.ts';
import { patchJob } from './task-job.ts';
import { hasBegun, jobName, jobOf, newSecretNames, ofTasks, taskSecrets } from './task-objects.ts';

/** Number of times that a Job is made again whose name another process has taken meanwhile. */
const TRIES = 20;
const LOOK_MS = 500;
/** Milliseconds beyond its grace period in which a Job must be gone with its pod. */
const GONE_MS = 60_000;

/** Returns the reasons for which a command cannot run on Kubernetes. */
export function taskRefusals({ egress, folders = [], gpus = 0 }: TaskSpec): string[] {
  return [
    ...(egress ? ['Commands that reach listed hosts only do not run on Kubernetes yet: use a docker cluster.'] : []),
    ...(folders.length > 0
      ? ['Commands that get files of a repository do not run on Kubernetes yet: put the files into the image.']
      : []),
    ...(gpus > 0 ? ['Graphics processors are not given to commands on Kubernetes yet: use a docker cluster.'] : []),
  ];
}

/** Runs a command to its end in a new Job, or adopts the one that exists (`Runtime.run`). */
export async function runTask(cluster: Cluster, spec: TaskSpec, context: TaskContext): Promise<TaskEnd> {
  throwIfCancelled(context.signal);
  const present = await findTask(cluster, spec);
  if (present && hasBegun(present)) {
    context.log(`${spec.displayName} (${spec.name}) was begun already: it is taken over.`);
    return awaitEnd(cluster, spec, present, context);
  }
  const refused = taskRefusals(spec);
  if (refused.length > 0) throw new RuntimeError('refused', refused.join(' '));
  await context.prepare?.();
  await ensureNamespace(cluster, spec.identity, context.signal);
  const around = [environmentPolicy(spec.identity), ...spec.storage.map((storage) => claimOf(spec, storage))];
  for (const object of around) await apply(cluster, object);
  return awaitEnd(cluster, spec, await begin(cluster, spec, context), context);
}

/** Finds the Job of an execution; null if there is none. Throws if a foreign Job has its name. */
async function findTask(cluster: Cluster, spec: TaskSpec): Promise<Job | null> {
  const found = await find<Job>(cluster, 'Job', namespaceOf(spec.identity), jobName(spec));
  if (found && found.metadata.labels?.[LABEL.installation] !== cluster.installation)
    throw new RuntimeError('refused', `A Job ${jobName(spec)} is there that is not ours: remove or rename it.`);
  return found;
}

/** Begins an execution. Of several processes one creates its Job, and only the Job that was created is begun. */
async function begin(cluster: Cluster, spec: TaskSpec, context: TaskContext): Promise<Job> {
  for (let at = 1; at <= TRIES; at++) {
    const present = await findTask(cluster, spec);
    if (present && hasBegun(present)) return present;
    // Created but never begun: its process crashed, and its Secrets may be missing.
    if (present) await removeUnbegun(cluster, present);
    const begun = await beginOnce(cluster, spec, context);
    if (begun) return begun;
    await sleep(LOOK_MS, undefined, { signal: context.signal });
  }
  throw new RuntimeError(
    'failed',
    `The Job ${jobName(spec)} cannot be made: the cluster still removes an earlier one.`,
  );
}

/** Creates the Job with its Secrets and begins it; null if another process was faster. */
async function beginOnce(cluster: Cluster, spec: TaskSpec, context: TaskContext): Promise<Job | null> {
  const { connection } = cluster;
  const namespace = namespaceOf(spec.identity);
  const names = newSecretNames(spec);
  throwIfCancelled(context.signal);
  let job: Job;
  try {
    job = await connection.call<Job>('POST', pathOf('Job', namespace), {
      body: jobOf(spec, names),
      query: { fieldManager: FIELD_MANAGER },
    });
  } catch (error) {
    if (isConflict(error)) return null;
    throw error;
  }
  try {
    for (const secret of taskSecrets(spec, names, job)) await apply(cluster, secret);
    throwIfCancelled(context.signal);
  } catch (error) {
    await removeUnbegun(cluster, job);
    throw error;
  }
  return patchJob(cluster, job, { spec: { suspend: false } });
}

/** Removes a Job unless it was begun since it was read. */
async function removeUnbegun(cluster: Cluster, { metadata }: Job): Promise<void> {
  const { uid, resourceVersion } = metadata;
  const present = pathOf('Job', metadata.namespace, metadata.name);
  const body = { propagationPolicy: 'Background', preconditions: { uid, resourceVersion } };
  try {
    await unlessGone(cluster.connection.call('DELETE', present, { body }));
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
}

/** Ends and removes executions of a service (`Runtime.removeTasks`). */
export async function removeTasks(
  cluster: Cluster,
  identity: Omit<WorkloadIdentity, 'generation'>,
  names: string[],
): Promise<void> {
  const jobs = await list<Job>(cluster, 'Job', namespaceOf(identity), ofTasks(identity));
  const chosen = jobs.filter(({ metadata }) => names.includes(metadata.labels?.[LABEL.task] ?? ''));
  await Promise.all(chosen.map((job) => removeJob(cluster, job)));
}

/** Removes a Job and waits until it is gone, which it is after its pod. */
async function removeJob(cluster: Cluster, { metadata: { namespace, name, uid }, spec }: Job): Promise<void> {
  await remove(cluster, 'Job', namespace, name);
  const graceSeconds = Number(spec.template.spec['terminationGracePeriodSeconds'] ?? 0);
  for (const end = Date.now() + graceSeconds * 1000 + GONE_MS; ; await sleep(LOOK_MS)) {
    const present = await find<Job>(cluster, 'Job', namespace, name);
    if (present?.metadata.uid !== uid) return;
    if (Date.now() > end) throw new RuntimeError('failed', `The cluster does not end Job ${name}.`);
  }
}
