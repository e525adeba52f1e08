import { conflict, internal } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { audit, type EventType, type SubTargetType } from '#platform/events/audit.ts';
import { findClusterById, type ClusterRow } from '#resources/cluster/queries.ts';
import { isLocked } from '#resources/cluster/view.ts';

/** Throws 409 while the cluster is locked (docs/contributing/rules.md 16). */
export function refuseLocked(context: Context, cluster: ClusterRow): void {
  if (isLocked(cluster, context.clock.now()))
    throw conflict(
      `Cluster ${cluster.name} is locked by ${cluster.locked_by} (${cluster.lock_reason}): unlock it first.`,
    );
}

/** Writes an event about a cluster. */
export const auditCluster = (
  context: Context,
  cluster: Pick<ClusterRow, 'id' | 'name' | 'organization_id'>,
  type: EventType,
  { sub, ...states }: { before?: unknown; after?: unknown; sub?: SubTargetType } = {},
): Promise<void> =>
  audit(context, {
    organizationId: cluster.organization_id,
    type,
    target: { type: 'CLUSTER', id: cluster.id, name: cluster.name, ...(sub ? { sub } : {}) },
    ...states,
  });

/** Returns a cluster's row after a change in the same transaction. */
export async function findRow(context: Context, organizationId: string, id: string): Promise<ClusterRow> {
  const row = await findClusterById(context.db, [organizationId], id);
  if (!row) throw internal(`Cluster ${id} is gone within its own transaction.`);
  return row;
}
