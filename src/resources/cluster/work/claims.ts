import { sql, type Database } from '#platform/database/index.ts';
import { isDrained } from '#platform/installation/drain.ts';
import { ClaimLost, leasedTable, type RowClaim } from '#platform/work/index.ts';
import type { LogEntry } from '#resources/cluster/work/queries.ts';
import type { WorkAction } from '#resources/cluster/work/states.ts';

/** Claim on work of a cluster. */
export interface ClusterClaim extends RowClaim {
  cluster_id: string;
  action: WorkAction;
  attempts: number;
  requested_by: string | null;
  requested_by_name: string;
  origin: string;
  user_agent: string | null;
}

/** Statements on the claims of work on clusters. */
export const CLUSTER_WORK_TABLE = leasedTable({
  table: 'cluster_work',
  waiting: 'WAITING',
  running: 'RUNNING',
  failed: sql`outcome = 'ERROR'`,
});

/**
 * Work `w` on cluster `c` that can be begun or taken over: the oldest of its cluster, unlocked, behind the deployments that were
 * requested before it and beside none that runs (docs/contributing/engine.md, *Clusters*); or begun by a worker that no longer renews.
 * A drained node begins only stops.
 */
const claimableOn = (nodeId: string) => sql<boolean>`(
  ${CLUSTER_WORK_TABLE.isLeft}
  or (w.status = 'WAITING' and c.locked_at is null and (w.action = 'STOP' or not ${isDrained(nodeId)})
    and not exists (select 1 from cluster_work o where o.cluster_id = c.id and o.status <> 'ENDED' and o.number < w.number)
    and not exists (select 1 from deployment d where d.cluster_id = c.id
      and (d.status in ('RUNNING', 'RECAP') or (d.status = 'WAITING' and d.queue_number < w.number)))))`;

/**
 * Claims the next work of clusters that live on the node or on none. The cluster's row is locked first and the question asked
 * again under that lock: who requests, deletes or ends work holds it as well. Call it in a transaction.
 */
export async function claimWork(db: Database, nodeId: string, leaseSeconds: number): Promise<ClusterClaim | undefined> {
  const claimable = claimableOn(nodeId);
  const candidate = await sql<{ id: string }>`
    select w.id from cluster_work w join cluster c on c.id = w.cluster_id
    where w.status <> 'ENDED' and (c.node_id is null or c.node_id = ${nodeId}) and ${claimable}
    order by w.created_at, w.number limit 1 for update of c skip locked`.execute(db);
  const id = candidate.rows[0]?.id;
  if (id === undefined) return undefined;
  const claimed = await sql<ClusterClaim>`
    update cluster_work w set ${CLUSTER_WORK_TABLE.claiming(leaseSeconds)}
    from cluster c where c.id = w.cluster_id and w.id = ${id} and ${claimable}
    returning w.*, w.claim_token as token`.execute(db);
  return claimed.rows[0];
}

/** Ends the work. Throws ClaimLost. */
export const endWork = (db: Database, claim: ClusterClaim, error: string | null): Promise<void> =>
  CLUSTER_WORK_TABLE.end(db, claim, { status: 'ENDED', outcome: error === null ? 'SUCCESS' : 'ERROR', error });

/** Adds a line to the log of the work. Throws ClaimLost. */
export async function logWork(db: Database, claim: ClusterClaim, entry: LogEntry): Promise<void> {
  const { step, message, isError = false, hint = null } = entry;
  const inserted = await sql<{ sequence: number }>`
    insert into cluster_log (work_id, sequence, organization_id, cluster_id, step, message, is_error, hint)
    select w.id, coalesce((select max(sequence) from cluster_log l where l.work_id = w.id), 0) + 1,
      w.organization_id, w.cluster_id, ${step}, ${message}, ${isError}, ${hint}
    from cluster_work w where w.id = ${claim.id} and w.claim_token = ${claim.token}
    returning sequence`.execute(db);
  if (inserted.rows.length === 0) throw new ClaimLost();
}

/** Columns of the cluster that the end of work changes. */
export interface ClusterEnd {
  state: string;
  settled_state: string;
  engine_version?: string;
  deployed_version?: number;
  deployed?: boolean;
}

/** Writes the end on the cluster, whose row the transaction has locked. */
export const endOnCluster = (db: Database, claim: ClusterClaim, end: ClusterEnd) => {
  const { deployed, ...columns } = end;
  return db
    .updateTable('cluster')
    .set({
      ...columns,
      ...(deployed ? { last_deployment_at: sql<Date>`now()` } : {}),
    })
    .where('organization_id', '=', claim.organization_id)
    .where('id', '=', claim.cluster_id)
    .execute();
};

/** Finds the names of a few services on the cluster that are to run, and the number of all. */
export async function findRunningServices(
  db: Database,
  claim: ClusterClaim,
): Promise<{ names: string[]; total: number }> {
  const rows = await db
    .selectFrom('service')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .select(['service.name', sql<number>`count(*) over ()`.as('total')])
    .where('environment.organization_id', '=', claim.organization_id)
    .where('environment.cluster_id', '=', claim.cluster_id)
    .where('service.wanted', '=', 'running')
    .orderBy('service.created_at')
    .limit(3)
    .execute();
  return { names: rows.map((row) => row.name), total: rows[0]?.total ?? 0 };
}
