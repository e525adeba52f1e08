import { arch, availableParallelism, cpus, freemem, loadavg, platform, totalmem } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from '#platform/context.ts';
import type {
  ClusterNeeds,
  ClusterSocketNeeds,
  ClusterTarget,
  NodeMetrics,
  NodeUsage,
} from '#resources/cluster/index.ts';
import { holdCredentials } from '#resources/credentials/index.ts';
import { holdGroups } from '#resources/metadata-group/index.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { actOnEnvironment } from '#services/capabilities/actions/request.ts';

/** Processor and memory of this machine. */
const measure = (nodeId: string): NodeMetrics => ({
  at: new Date(),
  instance: nodeId,
  cpuCores: availableParallelism(),
  load: loadavg() as [number, number, number],
  memoryTotalBytes: totalmem(),
  memoryAvailableBytes: freemem(),
});

/** Milliseconds over which the use of the processor is measured. */
const WINDOW_MS = 250;

/** Milliseconds of all processors that were not idle. */
const busyMs = (): number =>
  cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0);

/** Use of this machine. */
async function measureUse(nodeId: string): Promise<NodeUsage> {
  const [before, start] = [busyMs(), performance.now()];
  await sleep(WINDOW_MS);
  const cpuMilli = Math.max(0, Math.round(((busyMs() - before) / (performance.now() - start)) * 1000));
  const architecture = arch() === 'x64' ? 'amd64' : arch();
  return { ...measure(nodeId), cpuMilli, architecture, operatingSystem: platform() };
}

/** Requests that every environment on the cluster stops that has something running. */
async function stopEnvironments(context: Context, cluster: ClusterTarget): Promise<void> {
  const rows = await context.db
    .selectFrom('environment')
    .select('id')
    .where('organization_id', '=', cluster.organizationId)
    .where('cluster_id', '=', cluster.id)
    .where('deleting', '=', false)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('service')
          .select('service.id')
          .whereRef('service.environment_id', '=', 'environment.id')
          .where('service.organization_id', '=', cluster.organizationId)
          .where('service.wanted', '=', 'running'),
      ),
    )
    .orderBy('id')
    .execute();
  for (const { id } of rows) {
    const environment = await environmentTarget.find(context.db, id, [cluster.organizationId], { lock: true });
    if (environment) await actOnEnvironment(context, environment, 'STOP', null);
  }
}

/** What clusters need of the rest of the program. `nodeId` is this machine's: others can't be measured from here. */
export const clusterNeeds = (nodeId: string | null = null): ClusterNeeds & Pick<ClusterSocketNeeds, 'nodeUsage'> => ({
  holdCredentials: async ({ db }, organizationId, id) => {
    const row = await holdCredentials(db, { organizationId }, id);
    return row && { id: row.id, name: row.name, cloudProvider: row.cloud_provider };
  },
  unknownLabelsGroups: async (context, organizationId, ids) => {
    const known = await holdGroups(context.db, { organizationId }, 'LABELS', ids);
    return ids.filter((id) => !known.includes(id));
  },
  stopEnvironments,
  nodeMetrics: async (cluster) => (nodeId !== null && cluster.node_id === nodeId ? measure(nodeId) : undefined),
  nodeUsage: async (cluster) => (nodeId !== null && cluster.node_id === nodeId ? measureUse(nodeId) : undefined),
});
