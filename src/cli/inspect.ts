import { inspectWork } from '#app/work-reports.ts';
import { inspectClusters, type ClusterOverview } from '#clusters/overview.ts';
import { print } from '#cli/print.ts';
import { printTable } from '#cli/table.ts';
import type { Settings } from '#platform/settings/index.ts';

const HEADS = ['WORK', 'WAITING', 'RUNNING', 'RETRIED', 'OLDEST WAITING', 'LAST FAILURE'];

/** Prints for each kind of durable work what waits, runs, is oldest, was begun again and failed last. */
export async function inspectWorkCommand(settings: Settings): Promise<void> {
  const found = await inspectWork(settings);
  const rows = found.map((one) => [
    one.name,
    String(one.waiting),
    String(one.running),
    String(one.retried),
    one.oldestWaiting?.toISOString() ?? '-',
    one.lastFailure ? `${one.lastFailure.at.toISOString()} ${firstLineOf(one.lastFailure.error)}`.trimEnd() : '-',
  ]);
  printTable([HEADS, ...rows]);
}

const CLUSTER_HEADS = ['CLUSTER', 'ORGANIZATION', 'RUNTIME', 'MACHINE', 'ANSWERED', 'FOUND'];

/** Prints each cluster with its machine, its last answer and its engine; below it what does not work there, with the remedies. */
export async function inspectClustersCommand(settings: Settings): Promise<void> {
  const clusters = await inspectClusters(settings);
  printTable([
    CLUSTER_HEADS,
    ...clusters.map((cluster) => [
      cluster.name,
      cluster.organization,
      cluster.runtime,
      machineOf(cluster),
      cluster.reachedAt?.toISOString() ?? '-',
      cluster.capabilities?.description ?? '-',
    ]),
  ]);
  for (const { name, capabilities } of clusters)
    for (const [feature, remedy] of Object.entries(capabilities?.missing ?? {}))
      print(`${name}: no ${feature}: ${remedy}`);
}

function machineOf({ machine, isMachineLost, isMachineDrained }: ClusterOverview): string {
  const states = [...(isMachineLost ? ['lost'] : []), ...(isMachineDrained ? ['drained'] : [])];
  return [machine ?? '-', ...(states.length > 0 ? [`(${states.join(', ')})`] : [])].join(' ');
}

const firstLineOf = (text: string | null): string => (text ?? '').split('\n')[0]!.slice(0, 200);
