import { sql, type Database } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import type { Capabilities } from '#runtimes/runtime.ts';

/** Cluster of a machine, and the runtime that it has there. */
export interface ClusterOfNode {
  id: string;
  runtime: string;
}

/** Returns the value of the column for what a check found. */
export const capabilitiesColumn = ({ description, limits, missing = {} }: Capabilities) =>
  json({ description, limits, missing });

/** Lists the clusters of a machine. */
export const listClustersOfNode = (db: Database, nodeId: string): Promise<ClusterOfNode[]> =>
  db.selectFrom('cluster').select(['id', 'runtime']).where('node_id', '=', nodeId).execute();

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
