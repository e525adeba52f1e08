import type { Principal } from '#platform/access/principal.ts';
import { visibleClusters } from '#platform/access/visibility.ts';
import { conflict } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import * as queries from '#resources/cluster/queries.ts';
import { auditCluster, findRow } from '#resources/cluster/rules.ts';
import { isLocked, toLockView } from '#resources/cluster/view.ts';

const DAY_MS = 86_400_000;

/** Locks a cluster until it is unlocked or the time is over: nothing is deployed on it. 409 if it is locked already. */
export async function lockCluster(
  context: Context,
  cluster: queries.ClusterRow,
  input: { reason: string; ttl_in_days?: number },
): Promise<unknown> {
  const now = context.clock.now();
  if (isLocked(cluster, now))
    throw conflict(
      `Cluster ${cluster.name} is locked already, by ${cluster.locked_by} (${cluster.lock_reason}): unlock it first.`,
    );
  const scope = { organizationId: cluster.organization_id };
  await queries.setLock(context.db, scope, cluster.id, {
    locked_at: now,
    locked_by: context.actor.name,
    lock_reason: input.reason.trim(),
    lock_ttl_days: input.ttl_in_days ?? null,
    lock_expires_at: input.ttl_in_days === undefined ? null : new Date(now.getTime() + input.ttl_in_days * DAY_MS),
  });
  const view = toLockView(await findRow(context, cluster.organization_id, cluster.id), now);
  await auditCluster(context, cluster, 'LOCK', { after: view });
  return view;
}

/** Unlocks a cluster; one that isn't locked stays so, without an event. */
export async function unlockCluster(context: Context, cluster: queries.ClusterRow): Promise<void> {
  if (cluster.locked_at === null) return;
  await queries.setLock(context.db, { organizationId: cluster.organization_id }, cluster.id, null);
  await auditCluster(context, cluster, 'UNLOCK', {
    before: { reason: cluster.lock_reason, owner_name: cluster.locked_by },
  });
}

/** Removes the locks whose time is over: the engine looks at `locked_at` only. Runs in the worker's transaction. */
export async function endExpiredLocks(context: Context): Promise<number> {
  const expired = await queries.lockExpiredLocks(context.db, context.clock.now());
  for (const cluster of expired) {
    await queries.setLock(context.db, { organizationId: cluster.organization_id }, cluster.id, null);
    await auditCluster(context, cluster, 'UNLOCK', {
      before: { reason: cluster.lock_reason, owner_name: cluster.locked_by },
    });
  }
  return expired.length;
}

/** Lists the locks that hold now, of the clusters that the caller may see. */
export async function listLocks(context: Context, principal: Principal, organizationId: string) {
  const visible = visibleClusters(principal, organizationId);
  const rows = await queries.listLockedClusters(context.db, { organizationId }).where(visible).execute();
  return { results: rows.flatMap((row) => toLockView(row, context.clock.now()) ?? []) };
}
