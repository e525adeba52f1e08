import type { Platform } from '#platform/context.ts';
import { listQueueItems, reportFindings, storeFindings, type Finding } from '#deployments/queue/queries.ts';
import { findStuck, type QueueItem } from '#deployments/queue/stuck.ts';

/** Seconds after which a head that nothing holds is reported: workers look for one at least every few seconds. */
const UNCLAIMED_SECONDS = 60;

/**
 * Looks for what holds the queue up and can't end by itself: deployments and work that wait for each other, and heads that no worker claims.
 * Findings go to the log once, and to the table `queue_finding`, from which the metrics and `doctor` read them.
 */
export async function watchQueue(
  { db, log, settings }: Pick<Platform, 'db' | 'log' | 'settings'>,
  unclaimedSeconds = UNCLAIMED_SECONDS,
): Promise<void> {
  const { cycles, free } = findStuck(await listQueueItems(db, settings));
  await storeFindings(db, [...cycles.map(cycleFinding), ...free.map(freeFinding)]);
  for (const { id, kind, message } of await reportFindings(db, unclaimedSeconds))
    log.error({ finding: id, kind }, message);
}

function cycleFinding(cycle: QueueItem[]): Finding {
  const names = cycle.map(({ label }) => label).join(', then ');
  const [first] = [...cycle].sort((a, b) => (a.id < b.id ? -1 : 1));
  return {
    id: `CYCLE ${first!.id}`,
    cluster_id: first!.clusterId,
    kind: 'CYCLE',
    message: `Cluster ${first!.clusterName}: the queue stands still, because ${names} wait for each other in a circle. Cancel one of them to let the others go on.`,
  };
}

function freeFinding({ id, label, clusterId, clusterName, absentNode }: QueueItem): Finding {
  const why =
    absentNode === null
      ? 'Every worker is busy or none runs: start one more, or raise QUARTERDECK_WORKER_SLOTS.'
      : `The machine ${absentNode}, on which the cluster lives, has not been seen for more than two minutes: start the service there.`;
  return {
    id: `UNCLAIMED ${id}`,
    cluster_id: clusterId,
    kind: 'UNCLAIMED',
    message: `Cluster ${clusterName}: ${label} can begin, but no worker claims it. ${why}`,
  };
}
