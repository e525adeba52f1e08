import { chooseAlone } from '#deployments/executor/claims.ts';
import { leasedTable, type RowClaim } from '#platform/work/index.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { EPOCH } from '#platform/installation/failover.ts';
import { isDrained } from '#platform/installation/drain.ts';

/** Seconds that a claim holds without being renewed, by the database's clock. */
export const LEASE_SECONDS = 15;

/** Claim on an execution of a schedule. */
export interface ClaimedExecution extends RowClaim {
  project_id: string;
  environment_id: string;
  service_id: string;
  release_id: string;
  cluster_id: string;
  runtime: string;
  /** True if the environment runs the code of a fork. */
  is_fork: boolean;
  /** Number of pickups since the execution was last followed for a while. */
  pickups: number;
  /** Epoch of the installation in which it was begun: whoever takes it over finds its command by it. */
  epoch: number;
  /** Names of commands that the runtime may have of it. */
  tasks: string[];
}

export interface ExecutionClaimOptions {
  nodeId: string;
  /** Kinds of services that this worker knows. */
  kinds: string[];
  /** Most of one organization that run at a time, over all workers. */
  perOrganization: number;
  /** Most that this call returns. */
  limit: number;
}

/** Reasons of executions themselves to be ended from outside. */
export type ExecutionReason = 'replaced' | 'stopped';

/** Statements on the claims of executions of schedules; those of deployments are their deployments' own. */
export const EXECUTIONS = leasedTable<'job_execution', ExecutionReason>({
  table: 'job_execution',
  state: 'state',
  waiting: 'WAITING',
  running: 'RUNNING',
  attempts: 'pickups',
  reason: sql`case when w.cancel_requested_at is not null then 'replaced'
    when (select s.deleting or s.wanted <> 'running' from service s where s.id = w.service_id) then 'stopped' end`,
  only: sql`scheduled_at is not null`,
  failed: sql`state = 'FAILED'`,
});

const OF_NODE = (nodeId: string) => sql`(k.node_id is null or k.node_id = ${nodeId})`;

/**
 * Claims due executions, and those that a dead worker has left: no two workers have the same one, and an organization never exceeds its
 * limit, over all workers. A due execution begins with the release that the service has now, and waits for the one before it unless both
 * may run. A drained node begins none. Organizations with the fewest running come first.
 */
export const claimExecutions = (db: Database, options: ExecutionClaimOptions): Promise<ClaimedExecution[]> =>
  chooseAlone(db, async (alone) => (await claimStatement(options).execute(alone)).rows, 'executions');

const claimStatement = ({ nodeId, kinds, perOrganization, limit }: ExecutionClaimOptions) => sql<ClaimedExecution>`
    with running as (
      select organization_id, count(*) as n from job_execution
      where state = 'RUNNING' and scheduled_at is not null and lease_until > clock_timestamp() group by organization_id
    ), due as (
      select x.id, s.release_id, e.project_id, k.id as cluster_id, k.runtime, e.fork_ref is not null as is_fork, x.created_at, x.concurrency,
        row_number() over (partition by x.service_id order by x.state = 'WAITING', x.created_at, x.id) as of_service, x.organization_id
      from job_execution x
      join service s on s.id = x.service_id
      join environment e on e.id = x.environment_id
      join cluster k on k.id = e.cluster_id
      where x.scheduled_at is not null and x.state in ('WAITING', 'RUNNING') and ${OF_NODE(nodeId)} and s.kind = any(${kinds}::text[])
        and case x.state when 'RUNNING' then x.lease_until is null or x.lease_until < clock_timestamp()
          else not ${isDrained(nodeId)} and k.locked_at is null and s.wanted = 'running' and not s.deleting and s.release_id is not null
            and (x.concurrency = 'Allow' or not exists (select from job_execution o
              where o.service_id = x.service_id and o.state = 'RUNNING' and o.scheduled_at is not null)) end
    ), ranked as (
      select due.*, coalesce(r.n, 0) + row_number() over (partition by due.organization_id order by due.created_at, due.id) as place
      from due left join running r on r.organization_id = due.organization_id
      -- Several of one service may wait: one begins.
      where due.concurrency = 'Allow' or due.of_service = 1
    ), candidate as (
      select ranked.* from ranked join job_execution x on x.id = ranked.id
      where ranked.place <= ${perOrganization} and x.state in ('WAITING', 'RUNNING')
      order by ranked.place, ranked.created_at limit ${limit} for update of x skip locked
    )
    update job_execution x set state = 'RUNNING', claim_token = gen_random_uuid(), pickups = pickups + 1, epoch = coalesce(x.epoch, ${EPOCH}),
      lease_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS}),
      started_at = coalesce(x.started_at, now()), release_id = coalesce(x.release_id, candidate.release_id)
    from candidate where x.id = candidate.id
    returning x.id, x.organization_id, candidate.project_id, x.environment_id, x.service_id, x.release_id, candidate.cluster_id,
      candidate.runtime, candidate.is_fork, x.claim_token as token, x.pickups, x.tasks, x.epoch`;
