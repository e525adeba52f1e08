import type pg from 'pg';
import { sql, type Database } from '#platform/database/index.ts';
import {
  lockInTransaction,
  lockOrganizations,
  takePlace,
  LIVE_WORKERS,
  type LockName,
} from '#platform/database/locks.ts';
import { EPOCH, FAILED_OVER, followFailover } from '#platform/installation/failover.ts';
import { isDrained } from '#platform/installation/drain.ts';
import { leasedTable, type Claim as WorkClaim, type Renewal } from '#platform/work/index.ts';
import { FORMATS } from '#deployments/model/snapshot.ts';
import { TAKE_DOWN } from '#deployments/model/states.ts';
import type { DeploymentRow } from '#deployments/queries.ts';

/** Seconds that a claim holds without being renewed, by the database's clock (docs/contributing/engine.md, *The queue*). */
export const LEASE_SECONDS = 15;

/** Figures of deployments come from here; claims, renewals and writes have statements of their own. */
export const DEPLOYMENT_CLAIMS = leasedTable({
  table: 'deployment',
  waiting: 'WAITING',
  running: 'RUNNING',
  ending: 'RECAP',
  failed: sql`status = 'ENDED' and outcome = 'ERROR' and ended_at > now() - interval '7 days'`,
});

/** Names that events and webhooks carry, and the cluster's runtime. */
export interface Names {
  organization: string;
  project: string;
  environment: string;
  mode: string;
  runtime: string;
  /** True if the environment runs the code of a fork. */
  isFork: boolean;
}

/** Claim on a deployment. */
export interface Claim extends WorkClaim {
  deployment: DeploymentRow;
  names: Names;
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
  /** Kinds of services that this worker knows; what has others is left to workers of a newer release. */
  kinds: string[];
  /** Most that this call answers. */
  limit: number;
}

/**
 * Shortens the time that a worker frozen in this transaction holds up others, and plans for all organizations alike: planning for each list of
 * them anew takes longer than the choice.
 */
const holdBriefly = (transaction: Database) =>
  sql`select set_config('idle_in_transaction_session_timeout', '2s', true),
    set_config('plan_cache_mode', 'force_generic_plan', true)`.execute(transaction);

/**
 * Runs a choice of work while no other worker chooses, so that counts and exclusions stay true. A worker that freezes right here holds up
 * the others for 2 s at most.
 */
export const chooseAlone = <T>(
  db: Database,
  choose: (db: Database) => Promise<T>,
  lock: LockName = 'claims',
): Promise<T> =>
  db.transaction().execute(async (transaction) => {
    await holdBriefly(transaction);
    await lockInTransaction(transaction, lock);
    return choose(transaction);
  });

/** Number of organizations that a claim considers: more than claims that run at a time, so that there is one for each. */
const CONSIDERED = 100;
/** Number of looks for a candidate before a claim returns none: other workers may have taken the ones it saw. */
const LOOKS = 3;

/**
 * Claims the next deployments: first those whose worker is gone, then heads of environments in which none runs. Organizations with the fewest
 * running come first, people before automatic requests, then age. While a database of the environment is restored its deployments wait, as
 * restores wait for them. A deployment starts when it is chosen, not when the choosing was asked for: nothing that it waited for ends later.
 * A drained node begins what takes down only, and takes over begun deployments like any other node.
 *
 * Claims look for candidates at the same time and lock the organizations of those that they take: the number that runs is counted under that lock,
 * and a claim goes on with the next organization where another has the first (docs/decisions/0034-claims-lock-one-organization.md).
 *
 * Work on a cluster and deployments on it keep their order and exclude each other (docs/contributing/engine.md, *Clusters*): that work begins by changing the
 * cluster's state under its row's lock, so that the condition on the state is asked again where it was changed meanwhile.
 */
export async function claimNext(db: Database, options: ClaimOptions): Promise<Claim[]> {
  const { open, failedOver } = await look(db);
  if (!open) return [];
  // What is begun now must not pass for what the lost transactions began under the same number.
  if (failedOver) await followFailover(db);
  for (let looks = 0; looks < LOOKS; looks++) {
    const claims = await claimOnce(db, options);
    if (claims === null || claims.length > 0) return claims ?? [];
  }
  return [];
}

/** Returns whether any deployment is open, in one cheap query: idle workers ask it often. */
async function look(db: Database): Promise<{ open: boolean; failedOver: boolean }> {
  const { rows } = await sql<{
    open: boolean;
    failedOver: boolean;
  }>`select ${FAILED_OVER} as "failedOver", exists (select from deployment where status = 'WAITING')
    or exists (select from deployment where status in ('RUNNING', 'RECAP')) as open`.execute(db);
  return rows[0]!;
}

/** Candidates for a claim, all or those of some organizations. */
const candidates = (options: ClaimOptions, organizations?: string[]) => {
  const chosen = organizations ? sql`and d.organization_id = any(${organizations}::uuid[])` : sql``;
  return sql`live as materialized (${LIVE_WORKERS}), running as (
      select d.organization_id, count(*) as n from deployment d where d.status in ('RUNNING', 'RECAP') and not d.resting ${chosen} group by d.organization_id
    ), orphan as (
      select d.id, d.organization_id, d.cluster_id, 0 as rank, 0::bigint as place, d.automatic, d.created_at
      from deployment d join cluster c on c.id = d.cluster_id
      where d.status in ('RUNNING', 'RECAP') and d.format = any(${FORMATS}::int[]) and d.kinds <@ ${options.kinds}::text[] ${chosen}
        and (d.worker_id is null or d.worker_id not in (select worker from live) or d.lease_until < clock_timestamp())
        and (c.node_id is null or c.node_id = ${options.nodeId})
    ), first as (
      -- The oldest of each environment, whatever keeps it waiting.
      select distinct on (d.environment_id) d.id, d.organization_id, d.environment_id, d.cluster_id, d.queue_number, d.format, d.kinds,
        d.action, d.automatic, d.created_at
      from deployment d where d.status = 'WAITING' ${chosen} order by d.environment_id, d.number
    ), head as (
      select d.id, d.organization_id, d.cluster_id, 1 as rank, d.automatic, d.created_at,
        coalesce(r.n, 0) + row_number() over (partition by d.organization_id order by d.automatic, d.created_at) as place
      from first d
      join cluster c on c.id = d.cluster_id
      left join running r on r.organization_id = d.organization_id
      where c.locked_at is null and (c.node_id is null or c.node_id = ${options.nodeId})
        and d.format = any(${FORMATS}::int[]) and d.kinds <@ ${options.kinds}::text[]
        and (d.action = any(${TAKE_DOWN}::text[]) or not ${isDrained(options.nodeId)})
        and not exists (select 1 from deployment o where o.environment_id = d.environment_id and o.status in ('RUNNING', 'RECAP'))
        and not exists (select 1 from deployment o where o.environment_id = d.environment_id and o.leftover_worker in (select worker from live)
          and o.leftover_until > clock_timestamp())
        and not exists (select 1 from database_restore r join service s on s.id = r.database_id where s.environment_id = d.environment_id
          and r.status = 'RUNNING' and r.lease_until > clock_timestamp())
        and not exists (select 1 from cluster_work w where w.cluster_id = c.id and w.status = 'WAITING' and w.number < d.queue_number)
    ), candidate as (
      select id, organization_id, cluster_id, rank, place, automatic, created_at from orphan
      union all select id, organization_id, cluster_id, rank, place, automatic, created_at from head where place <= ${options.organizationSlots}
    )`;
};

const AT_WORK = sql`('DEPLOYING', 'STOPPING', 'DRY_RUN')`;

/** Lists organizations of which something can be claimed, those whose turn it is first. Locks nothing. */
async function listClaimable(db: Database, options: ClaimOptions): Promise<string[]> {
  const { rows } = await sql<{ organization_id: string }>`with ${candidates(options)}
    select organization_id from (
      select c.organization_id, row_number() over (order by c.rank, c.place, c.automatic, c.created_at) as position
      from candidate c join cluster k on k.id = c.cluster_id where k.state not in ${AT_WORK}
    ) ordered group by organization_id order by min(position) limit ${CONSIDERED}`.execute(db);
  return rows.map((row) => row.organization_id);
}

/** Claims deployments of organizations that no other claim has locked; null if nothing can be claimed. Excludes `chooseAlone`. */
const claimOnce = (db: Database, options: ClaimOptions): Promise<Claim[] | null> =>
  db.transaction().execute(async (transaction) => {
    await holdBriefly(transaction);
    await takePlace(transaction, options.workerId);
    const organizations = await listClaimable(transaction, options);
    if (organizations.length === 0) return null;
    const locked = await lockOrganizations(transaction, organizations, options.limit);
    const { rows } = await sql<DeploymentRow & { names: Names }>`
      with ${candidates(options, locked)}, chosen as (
        select d.id, o.name as organization, p.name as project, e.name as environment, e.mode, k.runtime, e.fork_ref is not null as is_fork
        from deployment d join candidate c on c.id = d.id
        join cluster k on k.id = d.cluster_id
        join environment e on e.id = d.environment_id join project p on p.id = e.project_id join organization o on o.id = d.organization_id
        where k.state not in ${AT_WORK} and not ${FAILED_OVER}
        order by c.rank, c.place, c.automatic, c.created_at limit ${options.limit} for update of d skip locked for key share of k skip locked
      )
      update deployment set status = case when deployment.status = 'WAITING' then 'RUNNING' else deployment.status end,
        worker_id = ${options.workerId}, claim_token = gen_random_uuid(), attempts = attempts + 1, resting = false,
        attempt_number = attempt_number + 1, epoch = coalesce(deployment.epoch, ${EPOCH}),
        lease_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS}),
        started_at = coalesce(started_at, clock_timestamp()), updated_at = clock_timestamp()
      from chosen where deployment.id = chosen.id
      returning deployment.*, json_build_object('organization', chosen.organization, 'project', chosen.project,
        'environment', chosen.environment, 'mode', chosen.mode, 'runtime', chosen.runtime,
        'isFork', chosen.is_fork) as names`.execute(transaction);
    return rows.map(({ names, ...deployment }) => ({ deployment, names, token: deployment.claim_token! }));
  });

/**
 * Statement that renews the leases of claims and returns those that the worker still has. Rows that another transaction has locked are
 * returned without renewal: they hold up no other one.
 */
const RENEWAL = `with free as (
    select id from deployment where claim_token = any($1::uuid[]) and status <> 'ENDED' for update skip locked
  ), renewed as (
    update deployment d set lease_until = clock_timestamp() + make_interval(secs => $2) from free where d.id = free.id
    returning d.claim_token, d.cancel_requested_at
  )
  select claim_token as token, case when cancel_requested_at is not null then 'cancel' end as reason, true as renewed from renewed
  union all
  select claim_token, case when cancel_requested_at is not null then 'cancel' end, false from deployment
  where claim_token = any($1::uuid[]) and status <> 'ENDED' and id not in (select id from free)`;

/** Renews leases over the worker's own connection, which nothing else holds up. */
export async function renewClaims(client: pg.ClientBase, tokens: string[]): Promise<Renewal<'cancel'>[]> {
  const { rows } = await client.query<Renewal<'cancel'>>({
    name: 'renewal',
    text: RENEWAL,
    values: [tokens, LEASE_SECONDS],
  });
  return rows;
}

/** Gives a claim back, so that another attempt begins at once. Only a claim that a failure stopped counts as an attempt. */
export const giveBack = (db: Database, claim: Claim, stoppedBy: 'order' | 'failure') =>
  db
    .updateTable('deployment')
    .set({
      worker_id: null,
      claim_token: null,
      lease_until: null,
      ...(stoppedBy === 'failure' ? {} : { attempts: sql`attempts - 1` }),
    })
    .where('organization_id', '=', claim.deployment.organization_id)
    .where('id', '=', claim.deployment.id)
    .where('claim_token', '=', claim.token)
    .execute();

/** Records that work which a forced cancel cut off has stopped: the environment is free again. */
export const clearLeftover = (db: Database, claim: Claim, workerId: number) =>
  db
    .updateTable('deployment')
    .set({ leftover_worker: null, leftover_until: null })
    .where('organization_id', '=', claim.deployment.organization_id)
    .where('id', '=', claim.deployment.id)
    .where('leftover_worker', '=', workerId)
    .execute();
