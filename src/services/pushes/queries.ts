import { json } from '#platform/database/json.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { leasedTable, type ClaimRequest, type RowClaim, type WorkReport } from '#platform/work/index.ts';
import type { GitSource } from '#services/sources/git.ts';
import { selectServices } from '#services/service/queries.ts';
import type { ServiceOutcome } from '#services/pushes/outcome.ts';
import type { Sender } from '#services/pushes/signature.ts';

/** Channel that tells of new pushes. */
export const GIT_PUSHES = 'git_pushes';

/** Repository of an organization, as `git_webhook.repository` names it. */
export interface RepositoryOf {
  organization_id: string;
  repository: string;
}

/** Push that is not applied yet. */
export interface PushRow extends RepositoryOf {
  id: string;
  /** Sender of the call; null for what a poll found. */
  event: Sender | null;
  body: string | null;
  branch: string | null;
  before_commit: string | null;
  after_commit: string | null;
  environment_ids: string[] | null;
}

/** Claim on a push, and with it on those to the same repository. */
export interface PushClaim extends RowClaim, PushRow {
  attempts: number;
}

export interface NewPush extends RepositoryOf {
  id: string;
  delivery_id: string;
  body_digest?: string;
  event: Sender | null;
  body?: string | null;
  branch?: string;
  before_commit?: string | null;
  after_commit?: string | null;
  environment_ids?: string[];
  /** Seconds until it is applied. */
  inSeconds?: number;
}

/** Stores a push, unless the same call, or another one with the same body, was stored before. */
export async function insertPush(db: Database, { inSeconds = 0, ...push }: NewPush): Promise<boolean> {
  const { numInsertedOrUpdatedRows = 0n } = await db
    .insertInto('git_push')
    .values({ ...push, due_at: sql`now() + make_interval(secs => ${inSeconds})` })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows > 0n;
}

/** Counts the pushes of a repository that wait, up to a limit. */
export async function countWaiting(db: Database, of: RepositoryOf, limit: number): Promise<number> {
  const { rows } = await sql<{ waiting: number }>`
    select count(*)::int as waiting from (
      select from git_push where organization_id = ${of.organization_id} and repository = ${of.repository} and status <> 'ENDED'
      limit ${limit}) found`.execute(db);
  return rows[0]!.waiting;
}

const TABLE = leasedTable({
  table: 'git_push',
  waiting: 'WAITING',
  running: 'RUNNING',
  failed: sql`error is not null`,
});

export const { renew, end: endPush, giveBack: giveBackPush } = TABLE;

/** Figures of pushes, for operators. */
export const PUSH_REPORT: WorkReport = { name: 'git-pushes', status: TABLE.status };

/** Claims the oldest pushes that are due, one of each repository: pushes to a repository are applied in the order of their arrival. */
export async function claimPushes(db: Database, { limit, leaseSeconds }: ClaimRequest): Promise<PushClaim[]> {
  const { rows } = await sql<PushClaim>`
    update git_push set ${TABLE.claiming(leaseSeconds)} where id in (
      select w.id from git_push w where (w.status = 'WAITING' or ${TABLE.isLeft}) and w.due_at <= now() and not exists (
        select from git_push o where o.organization_id = w.organization_id and o.repository = w.repository
          and o.status <> 'ENDED' and o.due_at <= now() and o.number < w.number)
      order by w.number limit ${limit} for update skip locked)
    returning id, organization_id, repository, event, body, branch, before_commit, after_commit, environment_ids, attempts,
      claim_token as token`.execute(db);
  return rows;
}

/** Lists the pushes to the repository of a claim that wait behind it. */
export const listBehind = (db: Database, claim: PushClaim, limit: number): Promise<PushRow[]> =>
  db
    .selectFrom('git_push')
    .select(['id', 'organization_id', 'repository', sql<Sender | null>`event`.as('event'), 'body', 'branch'])
    .select(['before_commit', 'after_commit', 'environment_ids'])
    .where('organization_id', '=', claim.organization_id)
    .where('repository', '=', claim.repository)
    .where('status', '=', 'WAITING')
    .where('id', '<>', claim.id)
    .where('environment_ids', 'is', null)
    .where((where) => where.or([where('event', 'is not', null), where('before_commit', 'is not', null)]))
    .orderBy('number')
    .limit(limit)
    .execute();

/** Ends a push that was applied with the claim before it, in whose transaction this is. */
export const endBehind = (db: Database, { organization_id, id }: PushRow, columns: object) =>
  db
    .updateTable('git_push')
    .set({ ...columns, ended_at: sql`clock_timestamp()` })
    .where('organization_id', '=', organization_id)
    .where('id', '=', id)
    .execute();

/** Locks the branch's record until the commit, and makes it first if there is none. */
export async function lockBranch(db: Database, of: RepositoryOf, branch: string, id: string) {
  const { organization_id, repository } = of;
  await db
    .insertInto('git_branch')
    .values({ id, organization_id, repository, branch })
    .onConflict((conflict) => conflict.columns(['organization_id', 'repository', 'branch']).doNothing())
    .execute();
  return db
    .selectFrom('git_branch')
    .select(['id', 'head'])
    .where('organization_id', '=', organization_id)
    .where('repository', '=', repository)
    .where('branch', '=', branch)
    .forUpdate()
    .executeTakeFirstOrThrow();
}

/** Records the head of a branch, and puts off its next poll. */
export const setHead = (db: Database, of: RepositoryOf, id: string, head: string | null, pollInSeconds: number) =>
  db
    .updateTable('git_branch')
    .set({ head, polled: head, next_at: sql`greatest(next_at, now() + make_interval(secs => ${pollInSeconds}))` })
    .where('organization_id', '=', of.organization_id)
    .where('id', '=', id)
    .execute();

/** Tells whether an applied push began at the commit: a push that ends there came late. */
export async function isSucceeded(db: Database, of: RepositoryOf, branch: string, commit: string): Promise<boolean> {
  const found = await db
    .selectFrom('git_push')
    .select('id')
    .where('organization_id', '=', of.organization_id)
    .where('repository', '=', of.repository)
    .where('status', '=', 'ENDED')
    .where('branch', '=', branch)
    .where('before_commit', '=', commit)
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

/** Condition on services with `auto_deploy`, as the index has it. */
export const DEPLOYS_ITSELF = sql<boolean>`coalesce(service.spec ->> 'auto_deploy', service.spec -> 'auto_deploy_config' ->> 'auto_deploy') = 'true'`;

/** Services of an organization with `auto_deploy`, those of an environment beside each other. */
export const listAutoDeployed = (db: Database, scope: Scope) =>
  selectServices(db)
    .where('service.organization_id', '=', scope.organizationId)
    .where(DEPLOYS_ITSELF)
    .where('service.deleting', '=', false)
    .where('environment.deleting', '=', false)
    .orderBy('service.environment_id')
    .orderBy('service.id')
    .execute();

/** Sources of an organization's services without `auto_deploy` whose repository has a name. */
export const listOtherSources = (db: Database, scope: Scope, name: string) =>
  db
    .selectFrom('service')
    .select(['id', sql<GitSource>`spec -> 'git_repository'`.as('source')])
    .where('organization_id', '=', scope.organizationId)
    .where(sql<boolean>`lower(spec -> 'git_repository' ->> 'name') = ${name}`)
    .where(sql<boolean>`not coalesce(${DEPLOYS_ITSELF}, false)`)
    .where('observed', 'is', null)
    .execute();

/** Counts those services that are there and are not being deleted. */
export async function countPresent(db: Database, scope: Scope, ids: string[]): Promise<number> {
  const row = await db
    .selectFrom('service')
    .select(sql<number>`count(*)::int`.as('present'))
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${ids})`)
    .where('deleting', '=', false)
    .executeTakeFirstOrThrow();
  return row.present;
}

/** Locks services until the commit, in the order of their ids. */
export const lockServices = (db: Database, scope: Scope, ids: string[]) =>
  db
    .selectFrom('service')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${ids})`)
    .orderBy('id')
    .forNoKeyUpdate()
    .execute();

/** Records the newest commit of services: those that run another one are out of date. */
export const setNewestCommit = (db: Database, scope: Scope, ids: string[], commit: string) =>
  db
    .updateTable('service')
    .set({ newest_commit: commit })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${ids})`)
    .where(sql<boolean>`newest_commit is distinct from ${commit}`)
    .execute();

/** Services whose last deployment has removed them. */
export async function listUninstalled(db: Database, scope: Scope, ids: string[]): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select s.id from service s where s.organization_id = ${scope.organizationId} and s.id = any(${ids}) and s.wanted = 'absent'
      and (select d.action from deployment_service d where d.service_id = s.id order by d.number desc limit 1)
        in ('UNINSTALL', 'DELETE')`.execute(db);
  return rows.map(({ id }) => id);
}

/** Services that a deployment of the environment which has not ended has. */
export async function listUnderWay(db: Database, scope: Scope, environmentId: string): Promise<Set<string>> {
  const rows = await db
    .selectFrom('deployment_service')
    .innerJoin('deployment', 'deployment.id', 'deployment_service.deployment_id')
    .select('deployment_service.service_id')
    .where('deployment.organization_id', '=', scope.organizationId)
    .where('deployment.environment_id', '=', environmentId)
    .where('deployment.status', '<>', 'ENDED')
    .execute();
  return new Set(rows.map((row) => row.service_id));
}

/** Writes what became of a push, and forgets its body. */
export const outcomeColumns = (outcome: ServiceOutcome[] | null, error: string | null) => ({
  status: 'ENDED',
  body: null,
  outcome: outcome && json(outcome),
  error,
});

/** Deletes pushes that ended a month ago, by when a repeated call is refused by its commit alone. */
export const removeOldPushes = (db: Database) =>
  db
    .deleteFrom('git_push')
    .where('status', '=', 'ENDED')
    .where('ended_at', '<', sql<Date>`now() - interval '30 days'`)
    .execute();
