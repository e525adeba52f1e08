import type { Insertable } from 'kysely';
import { sql, type Database, type DB } from '#platform/database/index.ts';
import { leasedTable, type ClaimRequest, type RowClaim, type WorkReport } from '#platform/work/index.ts';
import type { CommitState } from '#services/pushes/status-request.ts';

/** Claim on the status of a commit that its provider does not show yet. */
export interface StatusClaim extends RowClaim {
  deployment_id: string;
  service_id: string;
  git_token_id: string;
  /** Protocol, host and port of the server: `https://git.example.com:3000`. */
  origin: string;
  owner: string;
  name: string;
  commit: string;
  /** `cancelled` if the deployment was, or a newer commit took its place. */
  reported: CommitState | null;
  attempts: number;
  /** State that the provider is to show. */
  state: CommitState;
  /** Names and ids for the sentence and the address. */
  service: string;
  environment: string;
  environment_id: string;
}

const TABLE = leasedTable({
  table: 'commit_status',
  waiting: 'WAITING',
  running: 'RUNNING',
  failed: sql`error is not null`,
});

export const { renew: renewStatuses, giveBack: giveBackStatus, write: writeStatus, end: endStatus } = TABLE;

/** Figures of the statuses of commits, for operators: those of deployments that go on wait. */
export const COMMIT_STATUS_REPORT: WorkReport = { name: 'commit-statuses', status: TABLE.status };

export const insertStatuses = (db: Database, rows: Insertable<DB['commit_status']>[]) =>
  db
    .insertInto('commit_status')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute();

/** State of the service's part of the deployment, as a provider has it. */
const STATE = sql`case
  when d.ended_at is null and exists (select from commit_status n where n.deployment_id = w.deployment_id and n.service_id = w.service_id
    and n.host = w.host and n.owner = w.owner and n.name = w.name and n.created_at > w.created_at) then 'cancelled'
  when d.ended_at is null then 'pending'
  when d.state = 'DEPLOYED' then 'success'
  when d.state in ('CANCELED', 'CANCELING') then 'cancelled'
  else 'failure' end`;

/** Claims statuses that differ from what their providers show. */
export async function claimStatuses(db: Database, { limit, leaseSeconds }: ClaimRequest): Promise<StatusClaim[]> {
  const { rows } = await sql<StatusClaim>`
    with due as (
      select w.id, ${STATE} as state, d.name as service, e.name as environment, e.id as environment_id
      from commit_status w join deployment_service d on d.deployment_id = w.deployment_id and d.service_id = w.service_id
        join environment e on e.id = d.environment_id
      where w.status <> 'ENDED' and (w.status = 'WAITING' or ${TABLE.isLeft}) and w.due_at <= now()
        and w.reported is distinct from ${STATE}
      order by w.due_at limit ${limit} for update of w skip locked
    )
    update commit_status c set ${TABLE.claiming(leaseSeconds)} from due where c.id = due.id
    returning c.id, c.organization_id, c.deployment_id, c.service_id, c.git_token_id, coalesce(c.origin, 'https://' || c.host) as origin, c.owner, c.name, c.commit, c.reported,
      c.attempts, c.claim_token as token, due.state, due.service, due.environment, due.environment_id`.execute(db);
  return rows;
}

/** Columns of a status that waits: for the end of its deployment, or for another attempt. */
export const waitingStatus = (inSeconds: number) => ({
  status: 'WAITING',
  claim_token: null,
  lease_until: null,
  due_at: sql<Date>`now() + make_interval(secs => ${inSeconds})`,
});
