import { sql, type Database } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import type { Capabilities } from '#runtimes/runtime.ts';

/** Cluster that a machine watches. */
export interface WatchedCluster {
  id: string;
  runtime: string;
  /** True if it has a connection of its own; otherwise it is on a runtime that other clusters of the machine share. */
  isApart: boolean;
}

/** Seconds after which another machine may watch a cluster that its watcher has not looked at. */
const WATCH_SECONDS = 90;

/** Returns the value of the column for what a check found. */
export const capabilitiesColumn = ({ description, limits, missing = {} }: Capabilities) =>
  json({ description, limits, missing });

/**
 * Lists the clusters that a machine watches now: its own, and those of no machine that were deployed, of which it claims what nobody
 * watches. A restored database does not know when they were reached.
 */
export async function listWatchedClusters(db: Database, nodeId: string): Promise<WatchedCluster[]> {
  const own = await db.selectFrom('cluster').select(['id', 'runtime']).where('node_id', '=', nodeId).execute();
  const { rows: apart } = await sql<{ id: string; runtime: string }>`
    update cluster set watched_by = ${nodeId}, watched_until = now() + ${WATCH_SECONDS} * interval '1 second'
    where id in (
      select id from cluster
      where node_id is null and (reached_at is not null or deployed_version is not null)
        and (watched_by = ${nodeId} or watched_until is null or watched_until < now())
      for update skip locked
    )
    returning id, runtime`.execute(db);
  return [
    ...own.map((cluster) => ({ ...cluster, isApart: false })),
    ...apart.map((cluster) => ({ ...cluster, isApart: true })),
  ];
}

/** Records that the runtime of clusters has answered, and what it can do now. */
export const noteReached = (db: Database, ids: string[], found: Capabilities) =>
  db
    .updateTable('cluster')
    .set({ reached_at: sql`now()`, capabilities: capabilitiesColumn(found) })
    .where('id', '=', sql<string>`any(${ids})`)
    .execute();

/** Forgets when clusters were reached last, and what they could do then: a restored database may be on another machine. */
export const forgetReached = (db: Database) =>
  db.updateTable('cluster').set({ reached_at: null, capabilities: null }).execute();
