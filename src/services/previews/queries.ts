import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { newId } from '#kernel/ids.ts';
import { idsInTurn, leasedTable, type ClaimRequest, type RowClaim, type WorkReport } from '#platform/work/index.ts';
import type { PullRequestState } from '#services/previews/payload.ts';
import type { ItemTable } from '#services/pushes/item-work.ts';
import type { RepositoryOf } from '#services/pushes/queries.ts';
import type { Sender } from '#services/pushes/signature.ts';
import { selectServices } from '#services/service/queries.ts';

/** Calls, previews or reports of an organization that are under way at a time: kinds of work with more slots leave some to others. */
export const SHARE = { share: 2, open: sql`status <> 'ENDED'` };

/** Channel that tells of previews to look at. */
export const PREVIEWS = 'previews';

/**
 * Locks a pull request until the commit; undefined if nothing is known of it. Previews that end meanwhile insert reports of it, which a lock of
 * its key would hold up.
 */
export const lockPullRequest = (db: Database, of: RepositoryOf, number: number) =>
  db
    .selectFrom('pull_request')
    .selectAll()
    .where('organization_id', '=', of.organization_id)
    .where('repository', '=', of.repository)
    .where('number', '=', number)
    .forNoKeyUpdate()
    .executeTakeFirst();

const columnsOf = (request: PullRequestState) => ({
  state: request.isOpen ? 'OPEN' : 'CLOSED',
  is_fork: request.isFork,
  is_labelled: request.isLabelled,
  head_branch: request.headBranch,
  head_commit: request.headCommit,
  base_branch: request.baseBranch,
  base_is_default: request.baseIsDefault,
  base_commit: request.baseCommit,
  provider: request.provider,
  title: request.title,
  author: request.author,
  head_repository: request.headRepository,
  changed_at: request.changedAt,
});

/** Inserts a pull request, unless another process was first. */
export const insertPullRequest = (db: Database, of: RepositoryOf, request: PullRequestState) =>
  db
    .insertInto('pull_request')
    .values({
      id: newId(),
      organization_id: of.organization_id,
      repository: of.repository,
      number: request.number,
      ...columnsOf(request),
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();

/** Records what a pull request is now. A comment that asked for a preview holds until it is closed. */
export const updatePullRequest = (db: Database, scope: Scope, id: string, request: PullRequestState) =>
  db
    .updateTable('pull_request')
    .set({
      ...columnsOf(request),
      ...(request.isOpen ? {} : { is_asked: false }),
      updated_at: sql`now()`,
    })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Records that a comment has asked for a preview. */
export const setAsked = (db: Database, scope: Scope, id: string) =>
  db
    .updateTable('pull_request')
    .set({ is_asked: true, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Lists the services with `auto_preview` in environments whose rule makes previews and that are none themselves. */
export const listPreviewedServices = (db: Database, scope: Scope) =>
  selectServices(db)
    .innerJoin('environment_deployment_rule as rule', 'rule.environment_id', 'environment.id')
    .select(['rule.auto_preview', 'rule.on_demand_preview'])
    .where('service.organization_id', '=', scope.organizationId)
    .where(sql<boolean>`service.spec ->> 'auto_preview' = 'true'`)
    .where((where) => where.or([where('rule.auto_preview', '=', true), where('rule.on_demand_preview', '=', true)]))
    .where('service.deleting', '=', false)
    .where('environment.deleting', '=', false)
    .where('environment.fork_ref', 'is', null)
    .where(sql<boolean>`not exists (select from preview p where p.environment_id = environment.id)`)
    .orderBy('service.environment_id')
    .orderBy('service.id')
    .execute();

/** Columns of a preview that is looked at soon. */
export const RESET = {
  status: 'WAITING',
  attempts: 0,
  claim_token: null,
  lease_until: null,
  ended_at: null,
  due_at: sql<Date>`now()`,
};

export interface WantedPreviews extends Scope {
  pullRequestId: string;
  sourceIds: string[];
  /** True if a preview that is gone is made again although its commit is the same. */
  again: boolean;
}

/** Records that environments have a preview of a pull request, which the next look makes or brings up to date. */
export const wantPreviews = (db: Database, { organizationId, pullRequestId, sourceIds, again }: WantedPreviews) =>
  db
    .insertInto('preview')
    .values(
      sourceIds.toSorted().map((sourceId) => ({
        id: newId(),
        organization_id: organizationId,
        pull_request_id: pullRequestId,
        source_id: sourceId,
        wanted: 'PRESENT',
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['pull_request_id', 'source_id']).doUpdateSet({
        ...RESET,
        wanted: 'PRESENT',
        applied_commit: sql`case when ${again} or preview.wanted = 'ABSENT' then null else preview.applied_commit end`,
      }),
    )
    .execute();

/** Columns of a preview without an approval. */
export const NOT_APPROVED = { approved_commit: null, approved_by: null, approved_with: null, approved_at: null };

/** Records that a pull request has no previews any more, except those of `sourceIds`. Approvals end with them. */
export const unwantPreviews = (db: Database, scope: Scope, pullRequestId: string, sourceIds: string[] = []) =>
  db
    .updateTable('preview')
    .set({ ...RESET, ...NOT_APPROVED, wanted: 'ABSENT' })
    .where('organization_id', '=', scope.organizationId)
    .where('pull_request_id', '=', pullRequestId)
    .where('wanted', '=', 'PRESENT')
    .where(sql<boolean>`not coalesce(source_id = any(${sourceIds}::uuid[]), false)`)
    .execute();

/** Claim on a preview. */
export interface PreviewClaim extends RowClaim {
  pull_request_id: string;
  source_id: string | null;
  environment_id: string | null;
  attempts: number;
}

const TABLE = leasedTable({
  table: 'preview',
  waiting: 'WAITING',
  running: 'RUNNING',
  failed: sql`outcome = 'REFUSED'`,
});

export const { write: writePreview, end: endPreview } = TABLE;

/** Figures of previews, for operators. */
export const PREVIEW_REPORT: WorkReport = { name: 'previews', status: TABLE.status };

export const PREVIEW_TABLE: ItemTable = { report: PREVIEW_REPORT, renew: TABLE.renew, giveBack: TABLE.giveBack };

/** Claims previews that are to be made, brought up to date or removed. */
export async function claimPreviews(db: Database, { limit, leaseSeconds }: ClaimRequest): Promise<PreviewClaim[]> {
  const isDue = sql`(w.status = 'WAITING' or ${TABLE.isLeft}) and w.due_at <= now()`;
  const { rows } = await sql<PreviewClaim>`
    update preview set ${TABLE.claiming(leaseSeconds)} where id in (${idsInTurn('preview', { isDue, ...SHARE, order: 'due_at', limit })})
    returning id, organization_id, pull_request_id, source_id, environment_id, attempts, claim_token as token`.execute(
    db,
  );
  return rows;
}

/** Preview with its pull request. */
export interface PreviewRow {
  wanted: 'PRESENT' | 'ABSENT';
  source_id: string | null;
  environment_id: string | null;
  applied_commit: string | null;
  /** Commit that each service was last asked to run, by id. */
  awaited: Record<string, string>;
  repository: string;
  number: number;
  state: 'OPEN' | 'CLOSED';
  is_fork: boolean;
  /** True if a label or a comment asks for a preview. */
  is_asked: boolean;
  head_branch: string;
  head_commit: string;
  base_branch: string;
  base_is_default: boolean;
  base_commit: string | null;
  provider: Sender | null;
  approved_commit: string | null;
  approved_by: string | null;
  approved_with: string | null;
}

/** Locks the preview of a claim until the commit; undefined if the claim is lost: another call has changed what is wanted. */
export async function lockPreview(db: Database, claim: PreviewClaim): Promise<PreviewRow | undefined> {
  const { rows } = await sql<{ id: string }>`
    select id from preview where organization_id = ${claim.organization_id} and id = ${claim.id}
      and claim_token = ${claim.token} for no key update`.execute(db);
  if (rows.length === 0) return undefined;
  return readPreview(db, claim);
}

/** Reads a preview as it is now. */
export async function readPreview(db: Database, claim: RowClaim): Promise<PreviewRow | undefined> {
  const { rows } = await sql<PreviewRow>`
    select p.wanted, p.source_id, p.environment_id, p.applied_commit, p.awaited, r.repository, r.number::float8 as number, r.state, r.is_fork,
      r.is_labelled or r.is_asked as is_asked, r.head_branch, r.head_commit, r.base_branch, r.base_is_default, r.base_commit,
      r.provider, p.approved_commit, p.approved_by, p.approved_with
    from preview p join pull_request r on r.id = p.pull_request_id
    where p.organization_id = ${claim.organization_id} and p.id = ${claim.id}`.execute(db);
  return rows[0];
}

/** Columns of a preview that is looked at again later. */
export const putOff = (inSeconds: number) => ({
  status: 'WAITING',
  claim_token: null,
  lease_until: null,
  attempts: 0,
  due_at: sql<Date>`now() + make_interval(secs => ${inSeconds})`,
});

/** Counts the environments of an organization that are previews and are not being deleted. */
export async function countPresent(db: Database, scope: Scope): Promise<number> {
  const row = await db
    .selectFrom('preview')
    .innerJoin('environment', 'environment.id', 'preview.environment_id')
    .select(sql<number>`count(*)::int`.as('present'))
    .where('preview.organization_id', '=', scope.organizationId)
    .where('environment.deleting', '=', false)
    .executeTakeFirstOrThrow();
  return row.present;
}

/** Head of the pull request of a preview, in a statement that writes it. */
export const HEAD_OF_REQUEST = sql<string>`(select r.head_commit from pull_request r where r.id = preview.pull_request_id)`;

/** Tells whether the project of an environment has another one of a name. */
export async function isNameTaken(db: Database, scope: Scope, projectId: string, name: string): Promise<boolean> {
  const row = await db
    .selectFrom('environment')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('project_id', '=', projectId)
    .where(sql<boolean>`lower(name) = lower(${name})`)
    .executeTakeFirst();
  return row !== undefined;
}

/** Deletes closed pull requests that nothing was heard of for a month. Repeated calls about them are refused by their age. */
export const removeOldPullRequests = (db: Database) =>
  db
    .deleteFrom('pull_request')
    .where('state', '=', 'CLOSED')
    .where('updated_at', '<', sql<Date>`now() - interval '30 days'`)
    .where(
      sql<boolean>`not exists (select from preview p where p.pull_request_id = pull_request.id
      and (p.environment_id is not null or p.status <> 'ENDED'))`,
    )
    .execute();
