import { newId } from '#kernel/ids.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { idsInTurn, leasedTable, type ClaimRequest, type RowClaim, type WorkReport } from '#platform/work/index.ts';
import { SHARE } from '#services/previews/queries.ts';

/** Status of a preview that a provider was told last. */
export interface ToldStatus {
  /** SHA-256 of the status. */
  digest: string;
  /** Commit that the preview was last seen running; null for none, and after a failure since. */
  ran: string | null;
}

/** Columns of what a provider was told of a pull request. */
export interface Told {
  /** Comment at the provider; null for none yet. */
  comment_id: string | null;
  /** True if people have deleted the comment. */
  comment_is_gone: boolean;
  /** SHA-256 of the comment. */
  told_comment: string | null;
  /** Statuses by the id of their preview. */
  told_statuses: Record<string, ToldStatus>;
}

/** Claim on what a provider shows of the previews of a pull request. */
export interface ReportClaim extends RowClaim, Told {
  pull_request_id: string;
  requests: number;
  attempts: number;
}

const TABLE = leasedTable({
  table: 'pull_request_report',
  waiting: 'WAITING',
  running: 'RUNNING',
  failed: sql`error is not null`,
});

export const { renew: renewReports, giveBack: giveBackReport } = TABLE;

/** Figures of what providers are told of previews, for operators: those of pull requests with a preview wait. */
export const REPORT_REPORT: WorkReport = { name: 'pull-request-reports', status: TABLE.status };

const UNDER_WAY = sql`pull_request_report.status = 'RUNNING'`;

/** Has the provider of a pull request told soon. A report that is under way is looked at again afterwards. */
export const wantReport = (db: Database, { organizationId }: Scope, pullRequestId: string) =>
  db
    .insertInto('pull_request_report')
    .values({ id: newId(), organization_id: organizationId, pull_request_id: pullRequestId })
    .onConflict((conflict) =>
      conflict.column('pull_request_id').doUpdateSet({
        requests: sql`pull_request_report.requests + 1`,
        status: sql`case when ${UNDER_WAY} then 'RUNNING' else 'WAITING' end`,
        attempts: sql`case when ${UNDER_WAY} then pull_request_report.attempts else 0 end`,
        due_at: sql<Date>`now()`,
        ended_at: null,
      }),
    )
    .execute();

/** Seconds between two looks at the environments of previews: a tenth of the time since their provider was told something new. */
const LOOK_SECONDS = { least: 10, most: 600 };
const PAUSE = sql`least(${LOOK_SECONDS.most}, greatest(${LOOK_SECONDS.least}, extract(epoch from now() - told_at) / 10))`;

export interface ReportEnd extends Partial<Told> {
  /** Seconds until the next look; `paced` for a pause that grows as long as nothing changes, and `none` for no further look. */
  next: number | 'paced' | 'none';
  /** True if the provider was told something new. */
  isNews?: boolean;
  /** Attempts to reach the provider that failed; 0 unless it is said. */
  attempts?: number;
  /** Reason why the provider does not show it; the former one stays if it is not said. */
  error?: string | null;
}

/** Ends a look at a report. One that was wanted meanwhile is due at once. Throws ClaimLost. */
export function endLook(
  db: Database,
  claim: ReportClaim,
  { next, isNews = false, attempts = 0, ...columns }: ReportEnd,
) {
  const { told_statuses: statuses, ...rest } = columns;
  const isWanted = sql`requests <> ${claim.requests}`;
  const pause =
    next === 'none'
      ? sql`0`
      : next === 'paced' && isNews
        ? sql`${LOOK_SECONDS.least}`
        : next === 'paced'
          ? PAUSE
          : sql`${next}`;
  const due = sql`now() + make_interval(secs => (${pause})::float8)`;
  const isLast = sql`(${next === 'none'} and not ${isWanted})`;
  return TABLE.write(db, claim, {
    ...rest,
    ...(statuses ? { told_statuses: JSON.stringify(statuses) } : {}),
    ...(isNews ? { told_at: sql<Date>`now()` } : {}),
    attempts: sql<number>`case when ${isWanted} then 0 else ${attempts} end`,
    status: sql<string>`case when ${isLast} then 'ENDED' else 'WAITING' end`,
    due_at: sql<Date>`case when ${isWanted} then now() else ${due} end`,
    ended_at: sql<Date>`case when ${isLast} then clock_timestamp() end`,
    claim_token: null,
    lease_until: null,
  });
}

/** Stores what is known of statuses while a report is under way. Throws ClaimLost. */
export const keepStatuses = (
  db: Database,
  claim: ReportClaim,
  { told_statuses: statuses }: Pick<Told, 'told_statuses'>,
) => TABLE.write(db, claim, { told_statuses: JSON.stringify(statuses) });

/** Claims reports that are due. */
export async function claimReports(db: Database, { limit, leaseSeconds }: ClaimRequest): Promise<ReportClaim[]> {
  const isDue = sql`(w.status = 'WAITING' or ${TABLE.isLeft}) and w.due_at <= now()`;
  const { rows } = await sql<ReportClaim>`
    update pull_request_report set ${TABLE.claiming(leaseSeconds)} where id in (${idsInTurn('pull_request_report', { isDue, ...SHARE, order: 'due_at', limit })})
    returning id, organization_id, pull_request_id, comment_id, comment_is_gone, told_comment, told_statuses, requests, attempts,
      claim_token as token`.execute(db);
  return rows;
}

export const findPullRequest = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('pull_request')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirst();

/** Preview with the name of the environment that it is of. */
export interface ReportedPreview {
  id: string;
  source_id: string | null;
  environment_id: string | null;
  source: string | null;
  wanted: 'PRESENT' | 'ABSENT';
  status: 'WAITING' | 'RUNNING' | 'ENDED';
  outcome: 'PREVIEWED' | 'AWAITS_APPROVAL' | 'NOT_AFFECTED' | 'REFUSED' | 'REMOVED' | null;
  applied_commit: string | null;
  looked_commit: string | null;
  /** True if the head is in another repository, or was when the preview was made. */
  is_fork: boolean;
  approved_commit: string | null;
  /** Commit that each service was last asked to run, by id. */
  awaited: Record<string, string>;
}

/** Previews of a pull request, those of one environment after another. */
export async function listReported(db: Database, scope: Scope, pullRequestId: string): Promise<ReportedPreview[]> {
  const { rows } = await sql<ReportedPreview>`
    select p.id, p.source_id, p.environment_id, s.name as source, p.wanted, p.status, p.outcome, p.applied_commit, p.looked_commit,
      r.is_fork, p.approved_commit, p.awaited
    from preview p join pull_request r on r.id = p.pull_request_id left join environment s on s.id = p.source_id
    where p.organization_id = ${scope.organizationId} and p.pull_request_id = ${pullRequestId}
    order by p.created_at, p.id`.execute(db);
  return rows;
}
