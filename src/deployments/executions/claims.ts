import { sql, type Database } from '#platform/database/index.ts';

/** Seconds that a claim holds without being renewed, by the database's clock. */
const LEASE_SECONDS = 15;

/** An execution of a schedule that this worker carries on, fenced by the token. */
export interface ClaimedExecution {
  id: string;
  organization_id: string;
  project_id: string;
  environment_id: string;
  service_id: string;
  release_id: string;
  cluster_id: string;
  runtime: string;
  token: string;
  pickups: number;
}

const OF_NODE = (nodeId: string) => sql`(k.node_id is null or k.node_id = ${nodeId})`;

/**
 * Claims what is due, and what a worker that is gone has left: several workers never have one execution. What is due begins with the release
 * that the service has now, and waits for the one before it unless both may run.
 */
export async function claimExecutions(db: Database, nodeId: string, limit: number): Promise<ClaimedExecution[]> {
  const { rows } = await sql<ClaimedExecution>`
    with candidate as (
      select x.id, s.release_id, e.project_id, k.id as cluster_id, k.runtime
      from job_execution x
      join service s on s.id = x.service_id
      join environment e on e.id = x.environment_id
      join cluster k on k.id = e.cluster_id
      where x.scheduled_at is not null and x.state in ('WAITING', 'RUNNING') and ${OF_NODE(nodeId)}
        and case x.state when 'RUNNING' then x.lease_until is null or x.lease_until < clock_timestamp()
          else k.locked_at is null and s.wanted = 'running' and not s.deleting and s.release_id is not null
            and (x.concurrency = 'Allow' or not exists (select from job_execution o
              where o.service_id = x.service_id and o.state = 'RUNNING' and o.scheduled_at is not null)) end
      order by x.created_at limit ${limit} for update of x skip locked
    )
    update job_execution x set state = 'RUNNING', claim_token = gen_random_uuid(), pickups = pickups + 1,
      lease_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS}),
      started_at = coalesce(x.started_at, now()), release_id = coalesce(x.release_id, candidate.release_id)
    from candidate where x.id = candidate.id
    returning x.id, x.organization_id, candidate.project_id, x.environment_id, x.service_id, x.release_id, candidate.cluster_id,
      candidate.runtime, x.claim_token as token, x.pickups`.execute(db);
  return rows;
}

/** Why an execution is to be ended. */
export type Cancel = 'replaced' | 'stopped' | null;

/** Renews the leases of claims and answers those that are still ours, with whether they are to be ended. */
export async function renewExecutions(db: Database, tokens: string[]): Promise<Map<string, Cancel>> {
  const { rows } = await sql<{ token: string; cancel: Cancel }>`
    update job_execution x set lease_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
    from service s
    where s.id = x.service_id and x.claim_token = any(${tokens}::uuid[]) and x.state = 'RUNNING'
    returning x.claim_token as token, case when x.cancel_requested_at is not null then 'replaced'
      when s.deleting or s.wanted <> 'running' then 'stopped' end as cancel`.execute(db);
  return new Map(rows.map(({ token, cancel }) => [token, cancel]));
}

/** Lets go of an execution, so that another worker goes on with it at once. */
export const giveBackExecution = (db: Database, { id, organization_id, token }: ClaimedExecution) =>
  db
    .updateTable('job_execution')
    .set({ claim_token: null, lease_until: null, pickups: sql`pickups - 1` })
    .where('organization_id', '=', organization_id)
    .where('id', '=', id)
    .where('claim_token', '=', token)
    .execute();
