import { sql, type Database } from '#platform/database/index.ts';

/** Cluster of a machine, and the runtime that it has there. */
export interface ClusterOfNode {
  id: string;
  runtime: string;
}

/** Lists the clusters of a machine. */
export const listClustersOfNode = (db: Database, nodeId: string): Promise<ClusterOfNode[]> =>
  db.selectFrom('cluster').select(['id', 'runtime']).where('node_id', '=', nodeId).execute();

/** Records that the runtimes of clusters have answered. */
export const noteReached = (db: Database, ids: string[]) =>
  db
    .updateTable('cluster')
    .set({ reached_at: sql`now()` })
    .where('id', '=', sql<string>`any(${ids})`)
    .execute();

/** Forgets when clusters were reached last. */
export const forgetReached = (db: Database) => db.updateTable('cluster').set({ reached_at: null }).execute();
