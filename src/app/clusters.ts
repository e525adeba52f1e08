import { availableParallelism, freemem, hostname, loadavg, totalmem } from 'node:os';
import type { Base } from '#app/install.ts';
import type { Runtimes } from '#app/runtimes.ts';
import type { Context } from '#platform/context.ts';
import {
  createClusterWorker,
  type ClusterNeeds,
  type ClusterReport,
  type ClusterTarget,
  type ClusterToCheck,
  type ClusterWorker,
  type NodeMetrics,
} from '#resources/cluster/index.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { actOnEnvironment } from '#services/capabilities/actions/request.ts';

/** Processor and memory of this machine. */
const measure = (): NodeMetrics => ({
  at: new Date(),
  instance: hostname(),
  cpuCores: availableParallelism(),
  load: loadavg() as [number, number, number],
  memoryTotalBytes: totalmem(),
  memoryAvailableBytes: freemem(),
});

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
    const environment = await environmentTarget.find(context.db, id, [cluster.organizationId], true);
    if (environment) await actOnEnvironment(context, environment, 'STOP', null);
  }
}

/** What clusters need of the rest of the program. `nodeId` is this machine's: others can't be measured from here. */
export const clusterNeeds = (nodeId: string | null = null): ClusterNeeds => ({
  // Credentials of providers and label groups are no resources yet: whatever a body names is unknown.
  findCredentials: async () => undefined,
  unknownLabelsGroups: async (_context, _organizationId, ids) => ids,
  stopEnvironments,
  nodeMetrics: async (cluster) => (nodeId !== null && cluster.node_id === nodeId ? measure() : undefined),
});

/** The worker that deploys and stops clusters, by asking their runtimes. */
export const createClusterWork = (
  base: Pick<Base, 'platform' | 'engineDatabase' | 'directConfig' | 'nodeId'>,
  runtimes: Pick<Runtimes, 'get'>,
): ClusterWorker =>
  createClusterWorker({
    platform: { ...base.platform, db: base.engineDatabase.db },
    directConfig: base.directConfig,
    nodeId: base.nodeId,
    checkRuntime: (cluster) => checkRuntime(runtimes, cluster),
  });

/** A runtime that can't be had is a report too: its message is for the people who read the cluster's log. */
async function checkRuntime(runtimes: Pick<Runtimes, 'get'>, cluster: ClusterToCheck): Promise<ClusterReport> {
  try {
    const runtime = await runtimes.get(cluster.runtime);
    return await runtime.check();
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    return { ok: false, description: error.message, limits: [] };
  }
}
