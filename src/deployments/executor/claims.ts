import { randomUUID } from 'node:crypto';
import { sql, type Database } from '#platform/database/index.ts';
import type { DeploymentRow } from '#deployments/queries.ts';

/** Seconds that a claim holds without being renewed, by the database's clock (engine.md, *The queue*). */
export const LEASE_SECONDS = 15;

/** First key of the advisory locks by which workers show that they live. */
export const LIVENESS_CLASS = 7301;

/** A deployment that this worker may carry on, fenced by the token. */
export interface Claim {
  deployment: DeploymentRow;
  token: string;
}

/** Thrown when another worker has taken the deployment over: everything of ours stops without a trace. */
export class ClaimLost extends Error {
  constructor() {
    super('The claim on the deployment is lost.');
    this.name = 'ClaimLost';
  }
}

export interface ClaimOptions {
  workerId: number;
  /** Machine of this worker: clusters that live on one are claimed by its own workers only. */
  nodeId: string;
  /** Most deployments of one organization at a time, over all workers. */
  organizationSlots: number;
}

/**
 * Claims the next deployment: first one whose worker is gone, else the head of an environment in which none runs. Organizations with the fewest
 * running come first, people before automatic requests, then age. Undefined when there is nothing.
 *
 * Work on a cluster and deployments on it keep their order and exclude each other (engine.md, *Clusters*): that work begins by changing the
 * cluster's state under its row's lock, so that the condition on the state is asked again where it was changed meanwhile.
 */
export async function claimNext(db: Database, options: ClaimOptions): Promise<Claim | undefined> {
  const token = randomUUID();
  const { rows } = await sql<DeploymentRow>`
    with live as (
      select objid::bigint as worker from pg_locks
      where locktype = 'advisory' and classid = ${LIVENESS_CLASS} and granted
        and database = (select oid from pg_database where datname = current_database())
    ), running as (
      select organization_id, count(*) as n from deployment where status in ('RUNNING', 'RECAP') group by organization_id
    ), orphan as (
      select d.id, 0 as rank, 0::bigint as load, d.automatic, d.created_at from deployment d join cluster c on c.id = d.cluster_id
      where d.status in ('RUNNING', 'RECAP')
        and (d.worker_id is null or d.worker_id not in (select worker from live) or d.lease_until < clock_timestamp())
        and (c.node_id is null or c.node_id = ${options.nodeId})
    ), head as (
      select d.id, 1 as rank, coalesce(r.n, 0) as load, d.automatic, d.created_at from deployment d
      join cluster c on c.id = d.cluster_id
      left join running r on r.organization_id = d.organization_id
      where d.status = 'WAITING' and c.locked_at is null and (c.node_id is null or c.node_id = ${options.nodeId})
        and coalesce(r.n, 0) < ${options.organizationSlots}
        and not exists (select 1 from deployment o where o.environment_id = d.environment_id and o.status in ('RUNNING', 'RECAP'))
        and not exists (select 1 from deployment o where o.environment_id = d.environment_id and o.status = 'WAITING' and o.number < d.number)
        and not exists (select 1 from cluster_work w where w.cluster_id = c.id and w.status = 'WAITING' and w.created_at < d.created_at)
    ), chosen as (
      select d.id from deployment d join (select * from orphan union all select * from head) c on c.id = d.id
      join cluster k on k.id = d.cluster_id
      where k.state not in ('DEPLOYING', 'STOPPING', 'DRY_RUN')
      order by c.rank, c.load, c.automatic, c.created_at limit 1 for update of d skip locked for share of k skip locked
    )
    update deployment set status = case when deployment.status = 'WAITING' then 'RUNNING' else deployment.status end,
      worker_id = ${options.workerId}, claim_token = ${token}, attempts = attempts + 1,
      lease_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS}),
      started_at = coalesce(started_at, now()), updated_at = now()
    from chosen where deployment.id = chosen.id
    returning deployment.*`.execute(db);
  return rows[0] && { deployment: rows[0], token };
}

/** Renews the lease of claims and answers those that are still ours, with whether they are to be cancelled. */
export async function renewClaims(
  db: Database,
  tokens: string[],
): Promise<Map<string, { cancel: boolean; forced: boolean }>> {
  const { rows } = await sql<{ claim_token: string; cancel: boolean; forced: boolean }>`
    update deployment set lease_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
    where claim_token = any(${tokens}::uuid[]) and status <> 'ENDED'
    returning claim_token, cancel_requested_at is not null as cancel, cancel_forced as forced`.execute(db);
  return new Map(rows.map((row) => [row.claim_token, { cancel: row.cancel, forced: row.forced }]));
}

/** Runs the work in a transaction that holds only while the claim does. Throws ClaimLost. */
export async function fenced<T>(db: Database, claim: Claim, work: (db: Database) => Promise<T>): Promise<T> {
  return db.transaction().execute(async (transaction) => {
    const held = await transaction
      .selectFrom('deployment')
      .select('id')
      .where('organization_id', '=', claim.deployment.organization_id)
      .where('id', '=', claim.deployment.id)
      .where('claim_token', '=', claim.token)
      .forUpdate()
      .executeTakeFirst();
    if (!held) throw new ClaimLost();
    return work(transaction);
  });
}

/** Gives a claim back at a step boundary; the attempt is not counted. */
export const giveBack = (db: Database, claim: Claim) =>
  db
    .updateTable('deployment')
    .set({ worker_id: null, claim_token: null, lease_until: null, attempts: sql`attempts - 1` })
    .where('organization_id', '=', claim.deployment.organization_id)
    .where('id', '=', claim.deployment.id)
    .where('claim_token', '=', claim.token)
    .execute();
