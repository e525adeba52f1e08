import type { Context } from '#platform/context.ts';
import type { ClusterTarget } from '#resources/cluster/index.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { listRunningOn } from '#services/capabilities/environment/actions/queries.ts';
import { actOnEnvironment } from '#services/capabilities/environment/actions/request.ts';

/** Requests that every environment on the cluster stops that has something running. */
export async function stopEnvironments(context: Context, cluster: ClusterTarget): Promise<void> {
  const rows = await listRunningOn(context.db, cluster, cluster.id);
  for (const { id } of rows) {
    const environment = await environmentTarget.find(context.db, id, [cluster.organizationId], { lock: true });
    if (environment) await actOnEnvironment(context, environment, 'STOP', null);
  }
}
