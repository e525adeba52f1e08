import { storable } from '#kernel/storable.ts';
import { json } from '#platform/database/json.ts';
import { sql, type Database } from '#platform/database/index.ts';
import {
  idsInTurn,
  leasedTable,
  requireHeld,
  type ClaimRequest,
  type Columns,
  type RowClaim,
  type WorkReport,
} from '#platform/work/index.ts';
import type { ItemTable } from '#services/pushes/item-work.ts';
import type { ServiceOutcome } from '#services/pushes/outcome.ts';
import type { Push } from '#services/pushes/payload.ts';
import type { Sender } from '#services/pushes/signature.ts';

/** Channel that tells of new pushes. */
export const GIT_PUSHES = 'git_pushes';

/** Repository of an organization, as `git_webhook.repository` names it. */
export interface RepositoryOf {
  organization_id: string;
  repository: string;
}

/** Call or poll that is not applied yet, as it was read. */
export interface PushRow {
  id: string;
  /** True for what a poll found: the repository has been asked. */
  is_poll: boolean;
  branch: string | null;
  before_commit: string | null;
  after_commit: string | null;
  /** Pushes of a call, without their files. */
  pushes: Push[];
  /** Times that the repository did not confirm the push. */
  asks: number;
  /** Times in a row that the repository did not answer, and why. */
  failures: number;
  error: string | null;
  /** Hours since the push came. */
  hours: number;
  /** False for a push that was put off and is not due. */
  is_due: boolean;
}

/** Call whose body is not read yet. */
export interface UnreadCall {
  id: string;
  event: Sender;
  body: string | null;
}

/** Claim on a push, and with it on those to the same repository. */
export interface PushClaim extends RowClaim, RepositoryOf {
  branch: string | null;
  after_commit: string | null;
  /** Environments that the push was put off for; null for a push to all. */
  environment_ids: string[] | null;
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
  const isNew = numInsertedOrUpdatedRows > 0n;
  if (isNew) await wakeFirst(db, push);
  return isNew;
}

/** Makes the push due for which its repository did not answer: the new ones wait behind it. The repository is asked every 10 seconds at most. */
const wakeFirst = (db: Database, { organization_id, repository }: RepositoryOf) =>
  sql`update git_push set due_at = least(due_at, greatest(now(), asked_at + interval '10 seconds')) where id in (
    select id from git_push where organization_id = ${organization_id} and repository = ${repository} and status = 'WAITING'
      and error is not null order by number limit 1 for update skip locked)`.execute(db);

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
  // Their repositories do not answer.
  retried: sql`failures > 0`,
});

/** Figures of pushes, for operators. */
export const PUSH_REPORT: WorkReport = { name: 'git-pushes', status: TABLE.status };

export const PUSHES: ItemTable = { report: PUSH_REPORT, renew: TABLE.renew, giveBack: TABLE.giveBack };

/** Pushes of an organization that run at a time, in all processes: those that failed before have a share of their own. */
const SHARE = 16;
const SHARE_OF_FAILING = 4;

/** Hours since a push came. */
const HOURS = sql<number>`(extract(epoch from now() - created_at) / 3600)::float8`;

/**
 * Claims the oldest pushes that are due, one of each repository: pushes to a repository are applied in the order of their arrival. Those to a
 * repository that does not answer wait for the first of them, which has the error. Organizations take turns, and each has a share of its own of the
 * pushes that run: repositories that hang keep up those of no other organization, and those that failed before keep up none that did not.
 */
export async function claimPushes(db: Database, { limit, leaseSeconds }: ClaimRequest): Promise<PushClaim[]> {
  const isOpen = sql`(w.status = 'WAITING' or ${TABLE.isLeft}) and w.due_at <= now()`;
  const firstIds = sql`
    select f.id from (
      select distinct on (w.organization_id, w.repository) w.id, w.number, w.organization_id, w.repository from git_push w where ${isOpen} order by w.organization_id, w.repository, w.number
    ) f where not exists (
      select from git_push o where o.organization_id = f.organization_id and o.repository = f.repository
        and o.status <> 'ENDED' and o.id <> f.id and (
          (o.number < f.number and o.error is not null) or (o.status = 'RUNNING' and o.lease_until > clock_timestamp())))`;
  const ids = idsInTurn('git_push', {
    isDue: sql`${isOpen} and w.id in (${firstIds})`,
    open: sql`status <> 'ENDED'`,
    order: 'number',
    limit,
    share: SHARE,
    failing: { is: sql`error is not null`, share: SHARE_OF_FAILING },
  });
  const { rows } = await sql<PushClaim>`
    update git_push set ${TABLE.claiming(leaseSeconds)} where id in (${ids})
    returning id, organization_id, repository, branch, after_commit, environment_ids, attempts, claim_token as token`.execute(
    db,
  );
  return rows;
}

/** Lists calls to the repository of a claim whose bodies are not read yet, oldest first. */
export const listUnread = (db: Database, claim: PushClaim, limit: number): Promise<UnreadCall[]> =>
  db
    .selectFrom('git_push')
    .select(['id', sql<Sender>`event`.as('event'), 'body'])
    .where('organization_id', '=', claim.organization_id)
    .where('repository', '=', claim.repository)
    .where((where) => where.or([where('status', '=', 'WAITING'), where('id', '=', claim.id)]))
    .where('event', 'is not', null)
    .where('pushes', 'is', null)
    .orderBy('number')
    .limit(limit)
    .execute();

/** Stores the pushes of a call in the place of its body. */
export const storePushes = (db: Database, claim: PushClaim, id: string, pushes: Push[]) =>
  db
    .updateTable('git_push')
    .set({
      pushes: json(pushes),
      body: null,
      branch: pushes[0]?.branch ?? null,
      before_commit: pushes[0]?.before ?? null,
      after_commit: pushes[0]?.after ?? null,
    })
    .where('organization_id', '=', claim.organization_id)
    .where('id', '=', id)
    .where('status', '<>', 'ENDED')
    .execute();

/** Lists the push of a claim and those that wait to its repository, oldest first. Calls whose bodies are not read are left out. */
export const listBatch = (db: Database, claim: PushClaim): Promise<PushRow[]> =>
  db
    .selectFrom('git_push')
    .select(['id', 'branch', 'before_commit', 'after_commit', 'asks', 'failures', 'error'])
    .select(sql<boolean>`event is null`.as('is_poll'))
    .select(
      sql<Push[]>`coalesce((select jsonb_agg(p || '{"paths": null}') from jsonb_array_elements(pushes) p), '[]')`.as(
        'pushes',
      ),
    )
    .select(HOURS.as('hours'))
    .select(sql<boolean>`due_at <= now()`.as('is_due'))
    .where('organization_id', '=', claim.organization_id)
    .where('repository', '=', claim.repository)
    .where((where) => where.or([where('status', '=', 'WAITING'), where('id', '=', claim.id)]))
    .where((where) => where.or([where('event', 'is', null), where('pushes', 'is not', null)]))
    .where((where) => where.or([where('environment_ids', 'is', null), where('id', '=', claim.id)]))
    .orderBy('number')
    .execute();

/** Returns the pushes of calls with their files, by the id of the call. */
export async function listStoredPushes(db: Database, of: RepositoryOf, ids: string[]): Promise<Map<string, Push[]>> {
  const rows = await db
    .selectFrom('git_push')
    .select(['id', sql<Push[] | null>`pushes`.as('pushes')])
    .where('organization_id', '=', of.organization_id)
    .where('id', '=', sql<string>`any(${ids})`)
    .execute();
  return new Map(rows.map(({ id, pushes }) => [id, pushes ?? []]));
}

/** Ends pushes of the batch of a claim with the same outcome. Throws ClaimLost. */
export const endRows = (db: Database, claim: PushClaim, ids: string[], columns: Columns<'git_push'>): Promise<void> =>
  writeRows(db, claim, ids, { ...columns, ...RELEASED, ended_at: sql`clock_timestamp()` });

/** Puts off a push that its repository did not confirm. Throws ClaimLost. */
export const putOffRow = (db: Database, claim: PushClaim, id: string, seconds: number): Promise<void> =>
  writeRows(db, claim, [id], { ...NO_ERROR, ...waitingIn(seconds), asks: sql`asks + 1` });

/** Puts off a push whose repository did not answer. Throws ClaimLost. */
export const postponeRow = (
  db: Database,
  claim: PushClaim,
  id: string,
  { error, seconds }: { error: string; seconds: number },
): Promise<void> =>
  writeRows(db, claim, [id], {
    ...waitingIn(seconds),
    error: storable(error).slice(0, 500),
    failures: sql`failures + 1`,
    asked_at: sql`now()`,
  });

/** Forgets the error of pushes that are not due: their repository has answered. Throws ClaimLost. */
export const forgetErrors = (db: Database, claim: PushClaim, ids: string[]): Promise<void> =>
  writeRows(db, claim, ids, NO_ERROR);

const RELEASED = { claim_token: null, lease_until: null };
const NO_ERROR = { error: null, failures: 0 };

const waitingIn = (seconds: number) => ({
  ...RELEASED,
  status: 'WAITING',
  // A claim counted as an attempt.
  attempts: sql`case when status = 'RUNNING' then greatest(attempts - 1, 0) else attempts end`,
  due_at: sql`now() + make_interval(secs => ${seconds})`,
});

/** Writes rows of the batch of a claim, in whose transaction this is. Throws ClaimLost if another process has one of them. */
async function writeRows(db: Database, claim: PushClaim, ids: string[], columns: Columns<'git_push'>): Promise<void> {
  if (ids.includes(claim.id)) await TABLE.write(db, claim, columns);
  const others = ids.filter((id) => id !== claim.id);
  if (others.length === 0) return;
  const { numUpdatedRows } = await db
    .updateTable('git_push')
    .set(columns as object)
    .where('organization_id', '=', claim.organization_id)
    .where('id', '=', sql<string>`any(${others})`)
    .where('status', '=', 'WAITING')
    .executeTakeFirst();
  requireHeld(Number(numUpdatedRows) === others.length);
}

/** Returns those of the commits, by branch, at which applied pushes began: pushes that end there came late. */
export async function listSucceeded(
  db: Database,
  of: RepositoryOf,
  { branches, commits }: { branches: string[]; commits: string[] },
): Promise<Map<string, string[]>> {
  const rows = await db
    .selectFrom('git_push')
    .select(['branch', 'before_commit'])
    .distinct()
    .where('organization_id', '=', of.organization_id)
    .where('repository', '=', of.repository)
    .where('status', '=', 'ENDED')
    .where('branch', '=', sql<string>`any(${branches})`)
    .where('before_commit', '=', sql<string>`any(${commits})`)
    .where('error', 'is', null)
    .execute();
  const byBranch = Map.groupBy(rows, ({ branch }) => branch!);
  return new Map([...byBranch].map(([branch, found]) => [branch, found.map(({ before_commit: commit }) => commit!)]));
}

/** Columns that say what became of a push: what its call said is forgotten. */
export const outcomeColumns = (outcome: ServiceOutcome[] | null, error: string | null) => ({
  status: 'ENDED',
  body: null,
  pushes: null,
  outcome: outcome && json(outcome),
  error,
});

/** Deletes pushes that ended a month ago. A call that is repeated later moves no branch: its repository is asked. */
export const removeOldPushes = (db: Database) =>
  db
    .deleteFrom('git_push')
    .where('status', '=', 'ENDED')
    .where('ended_at', '<', sql<Date>`now() - interval '30 days'`)
    .execute();
