import { sql, type Database } from '#platform/database/index.ts';
import { FORMATS } from '#deployments/model/snapshot.ts';
import type { DeploymentRow } from '#deployments/queries.ts';

/** Seconds that a claim holds without being renewed, by the database's clock (engine.md, *The queue*). */
export const LEASE_SECONDS = 15;

/** First key of the advisory locks by which workers show that they live. */
export const LIVENESS_CLASS = 7301;
/** Names the lock that lets one worker choose at a time: what is counted over all workers is then exact. */
const CHOOSING = 7_301_003;

/** Names that events and webhooks carry, and the cluster's runtime. */
export interface Names {
  organization: string;
  project: string;
  environment: string;
  mode: string;
  runtime: string;
}

/** A deployment that this worker may carry on, fenced by the token. */
export interface Claim {
  deployment: DeploymentRow;
  names: Names;
  token: string;
}

/** Thrown when another worker has taken the deployment over, or it was cancelled by force: everything of ours stops without a trace. */
export class ClaimLost extends Error {
  constructor() {
    super('The claim on the deployment is lost.');
    this.name = 'ClaimLost';
  }
}

/** Thrown when the database cannot be written to: the attempt ends, and another one goes on when it is back. */
export class DatabaseAway extends Error {
  constructor(cause: unknown) {
    super('The database is away.', { cause });
    this.name = 'DatabaseAway';
  }
}

export interface ClaimOptions {
  workerId: number;
  /** Machine of this worker: clusters that live on one are claimed by its own workers only. */
  nodeId: string;
  /** Most deployments of one organization at a time, over all workers. */
  organizationSlots: number;
  /** Most that this call answers. */
  limit: number;
}

/** The workers whose liveness lock is held. */
const LIVE = sql`select objid::bigint as worker from pg_locks
  where locktype = 'advisory' and classid = ${sql.lit(LIVENESS_CLASS)} and granted
    and database = (select oid from pg_database where datname = current_database())`;

/**
 * Chooses work while no other worker does: what is counted, and what excludes each other, is as it is seen. A worker that is frozen right here
 * holds up the others for 2 s at most.
 */
export const chooseAlone = <T>(db: Database, choose: (db: Database) => Promise<T>): Promise<T> =>
  db.transaction().execute(async (transaction) => {
    await sql`select pg_advisory_xact_lock(${CHOOSING}), set_config('idle_in_transaction_session_timeout', '2s', true)`.execute(
      transaction,
    );
    return choose(transaction);
  });

/**
 * Claims the next deployments: first those whose worker is gone, then heads of environments in which none runs. Organizations with the fewest
 * running come first, people before automatic requests, then age. While a database of the environment is restored its deployments wait, as
 * restores wait for them. A deployment starts when it is chosen, not when the choosing was asked for: nothing that it waited for ends later.
 *
 * Work on a cluster and deployments on it keep their order and exclude each other (engine.md, *Clusters*): that work begins by changing the
 * cluster's state under its row's lock, so that the condition on the state is asked again where it was changed meanwhile.
 */
export async function claimNext(db: Database, options: ClaimOptions): Promise<Claim[]> {
  return chooseAlone(db, async (alone) => {
    const { rows } = await sql<DeploymentRow & { names: Names }>`
      with live as materialized (${LIVE}), running as (
        select organization_id, count(*) as n from deployment where status in ('RUNNING', 'RECAP') group by organization_id
      ), orphan as (
        select d.id, 0 as rank, 0::bigint as place, d.automatic, d.created_at from deployment d join cluster c on c.id = d.cluster_id
        where d.status in ('RUNNING', 'RECAP') and d.format = any(${FORMATS}::int[])
          and (d.worker_id is null or d.worker_id not in (select worker from live) or d.lease_until < clock_timestamp())
          and (c.node_id is null or c.node_id = ${options.nodeId})
      ), head as (
        select d.id, 1 as rank, d.automatic, d.created_at,
          coalesce(r.n, 0) + row_number() over (partition by d.organization_id order by d.automatic, d.created_at) as place
        from deployment d
        join cluster c on c.id = d.cluster_id
        left join running r on r.organization_id = d.organization_id
        where d.status = 'WAITING' and c.locked_at is null and (c.node_id is null or c.node_id = ${options.nodeId})
          and d.format = any(${FORMATS}::int[])
          and not exists (select 1 from deployment o where o.environment_id = d.environment_id and o.status in ('RUNNING', 'RECAP'))
          and not exists (select 1 from deployment o where o.environment_id = d.environment_id and o.status = 'WAITING' and o.number < d.number)
          and not exists (select 1 from deployment o where o.environment_id = d.environment_id and o.leftover_worker in (select worker from live)
            and o.leftover_until > clock_timestamp())
          and not exists (select 1 from database_restore r join service s on s.id = r.database_id where s.environment_id = d.environment_id
            and r.status = 'RUNNING' and r.lease_until > clock_timestamp())
          and not exists (select 1 from cluster_work w where w.cluster_id = c.id and w.status = 'WAITING' and w.created_at < d.created_at)
      ), candidate as (
        select id, rank, place, automatic, created_at from orphan
        union all select id, rank, place, automatic, created_at from head where place <= ${options.organizationSlots}
      ), chosen as (
        select d.id, o.name as organization, p.name as project, e.name as environment, e.mode, k.runtime
        from deployment d join candidate c on c.id = d.id
        join cluster k on k.id = d.cluster_id
        join environment e on e.id = d.environment_id join project p on p.id = e.project_id join organization o on o.id = d.organization_id
        where k.state not in ('DEPLOYING', 'STOPPING', 'DRY_RUN')
        order by c.rank, c.place, c.automatic, c.created_at limit ${options.limit} for update of d skip locked for share of k skip locked
      )
      update deployment set status = case when deployment.status = 'WAITING' then 'RUNNING' else deployment.status end,
        worker_id = ${options.workerId}, claim_token = gen_random_uuid(), attempts = attempts + 1,
        lease_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS}),
        started_at = coalesce(started_at, clock_timestamp()), updated_at = clock_timestamp()
      from chosen where deployment.id = chosen.id
      returning deployment.*, json_build_object('organization', chosen.organization, 'project', chosen.project,
        'environment', chosen.environment, 'mode', chosen.mode, 'runtime', chosen.runtime) as names`.execute(alone);
    return rows.map(({ names, ...deployment }) => ({ deployment, names, token: deployment.claim_token! }));
  });
}

/** Renews the leases of claims and answers those that are still ours, with `cancel` where they are to be cancelled. */
export async function renewClaims(db: Database, tokens: string[]): Promise<Map<string, 'cancel' | null>> {
  const { rows } = await sql<{ claim_token: string; cancel: 'cancel' | null }>`
    update deployment set lease_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
    where claim_token = any(${tokens}::uuid[]) and status <> 'ENDED'
    returning claim_token, case when cancel_requested_at is not null then 'cancel' end as cancel`.execute(db);
  return new Map(rows.map((row) => [row.claim_token, row.cancel]));
}

/** Gives a claim back, so that another attempt begins at once. `counted`: it stopped because of a failure and not in good order. */
export const giveBack = (db: Database, claim: Claim, counted: boolean) =>
  db
    .updateTable('deployment')
    .set({
      worker_id: null,
      claim_token: null,
      lease_until: null,
      ...(counted ? {} : { attempts: sql`attempts - 1` }),
    })
    .where('organization_id', '=', claim.deployment.organization_id)
    .where('id', '=', claim.deployment.id)
    .where('claim_token', '=', claim.token)
    .execute();

/** What a forced cancel cut off has stopped now: the environment is free. */
export const clearLeftover = (db: Database, claim: Claim, workerId: number) =>
  db
    .updateTable('deployment')
    .set({ leftover_worker: null, leftover_until: null })
    .where('organization_id', '=', claim.deployment.organization_id)
    .where('id', '=', claim.deployment.id)
    .where('leftover_worker', '=', workerId)
    .execute();
