import { pathOf, type Cluster } from './cluster.ts';
import { unlessGone } from './errors.ts';
import type { Job, Pod } from './kinds.ts';
import { ANNOTATION, FIELD_MANAGER } from './labels.ts';
import { containerOf } from './pods.ts';
import { endedBy, type EndedBy } from './task-objects.ts';
import { patchJob } from './task-job.ts';

/**
 * Begins to end a command, or goes on with it. A pod that is over keeps its log and its status, so that a running command is ended by the
 * deadline of its pod; one that has not started is ended by suspending its Job, which removes the pod.
 */
export async function endTask(cluster: Cluster, job: Job, pod: Pod | null, why: EndedBy): Promise<void> {
  const isRunning = pod !== null && containerOf(pod)?.state?.running !== undefined;
  if (endedBy(job) === null || (!isRunning && job.spec.suspend !== true))
    await patchJob(cluster, job, {
      metadata: { annotations: { [ANNOTATION.endedBy]: why } },
      spec: isRunning ? {} : { suspend: true },
    });
  if (isRunning && pod.spec.activeDeadlineSeconds !== 1) await endPod(cluster, pod);
}

/** Has the node end a pod now: SIGTERM, and SIGKILL after its grace period. */
async function endPod({ connection }: Cluster, { metadata }: Pod): Promise<void> {
  await unlessGone(
    connection.call('PATCH', pathOf('Pod', metadata.namespace, metadata.name), {
      body: { spec: { activeDeadlineSeconds: 1 } },
      type: 'application/merge-patch+json',
      query: { fieldManager: FIELD_MANAGER },
    }),
  );
}
