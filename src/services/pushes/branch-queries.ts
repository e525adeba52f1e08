import { storable } from '#kernel/storable.ts';
import { json } from '#platform/database/json.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { dueTable, inSeconds, type ClaimRequest, type RowClaim, type WorkReport } from '#platform/work/index.ts';
import type { RepositoryOf } from '#services/pushes/queries.ts';
import { DEPLOYS_ITSELF } from '#services/pushes/service-queries.ts';

/** Longest time in seconds between two polls of a branch, and the time where its webhook has called. */
export const LONGEST_POLL_SECONDS = 3600;

/** Branch that services follow. */
export interface FollowedBranch extends RepositoryOf {
  branch: string;
}

/** Claim on a branch whose head is asked for. */
export interface BranchClaim extends RowClaim, FollowedBranch {
  head: string | null;
  polled: string | null;
  failures: number;
  /** Lost calls of the webhook for which the branch is looked at. */
  wanted: number;
}

const TABLE = dueTable<BranchClaim, 'git_branch'>({
  table: 'git_branch',
  columns: ['repository', 'branch', 'head', 'polled', 'failures', 'wanted'],
  retrySeconds: 60,
  // Repositories that hang keep up those of no other organization.
  share: { failing: 4, others: 16 },
  failing: { failures: sql`failures + 1` },
  failure: { is: sql`failures > 0`, at: sql.ref('polled_at'), text: sql`repository || ': ' || error` },
});

export const { renew: renewBranches, giveBack: giveBackBranch } = TABLE;

/** Figures of polls, for operators. */
export const BRANCH_REPORT: WorkReport = { name: 'git-branches', status: TABLE.status };

/** Claims branches that are due, the longest due first. Without polls these are only those of lost calls. */
export const claimBranches = (db: Database, request: ClaimRequest, polls: boolean): Promise<BranchClaim[]> =>
  TABLE.claim(db, request, polls ? undefined : sql`wanted > 0`);

/** Configurations of all services with `auto_deploy`, in any organization. */
export const listSpecs = (db: Database) =>
  db
    .selectFrom('service')
    .select(['organization_id', 'kind', 'spec'])
    .where(DEPLOYS_ITSELF)
    .where('deleting', '=', false)
    .execute();

/** Adds branches that are followed since a short time, and deletes those that have not been followed for a day. */
export async function reconcileBranches(db: Database, followed: FollowedBranch[]): Promise<void> {
  const given = sql`jsonb_to_recordset(${json(followed)}::jsonb) as f(organization_id uuid, repository text, branch text)`;
  await sql`insert into git_branch (id, organization_id, repository, branch)
    select gen_random_uuid(), f.organization_id, f.repository, f.branch from ${given}
    where exists (select from organization o where o.id = f.organization_id)
    on conflict (organization_id, repository, branch) do nothing`.execute(db);
  // Rows that others have locked are left for the next time: they may lock several in another order.
  await sql`delete from git_branch where id in (
    select b.id from git_branch b where b.created_at < now() - interval '1 day' and not exists (
      select from ${given} where f.organization_id = b.organization_id and f.repository = b.repository and f.branch = b.branch)
    for update of b skip locked)`.execute(db);
}

/**
 * Writes the end of a poll: the head that it found, or why it found none. A call that was lost while it ran is not answered by it: the branch is due
 * again, and what it found counts as news then. False if the claim is lost.
 */
export const endPoll = (
  db: Database,
  claim: BranchClaim,
  seconds: number,
  found: { head: string } | { error: string },
): Promise<boolean> =>
  TABLE.end(db, claim, {
    polled_at: sql`now()`,
    ...('head' in found
      ? {
          polled: sql`case when wanted > ${claim.wanted} then head else ${found.head} end`,
          failures: 0,
          error: null,
          wanted: sql`greatest(wanted - ${claim.wanted}, 0)`,
          next_at: sql<Date>`case when wanted > ${claim.wanted} then now() else greatest(next_at, ${inSeconds(seconds)}) end`,
        }
      : {
          failures: sql`failures + 1`,
          error: storable(found.error).slice(0, 500),
          next_at: sql<Date>`greatest(next_at, ${inSeconds(seconds)})`,
        }),
  });

/**
 * Makes the branches of a repository due: a call of its webhook was lost. A poll that runs may have asked before the push, so that another one
 * follows it; what the last one found counts as news again, since its push may have failed. A repository that does not answer is asked every 10
 * seconds at most.
 */
export const wantPolls = (db: Database, of: RepositoryOf) =>
  // In the order of the branches, as pushes lock them.
  sql`update git_branch set wanted = wanted + 1,
      next_at = least(next_at, case when failures > 0 then greatest(now(), polled_at + interval '10 seconds') else now() end),
      polled = head
    where id in (select id from git_branch where organization_id = ${of.organization_id} and repository = ${of.repository}
      order by branch for update)`.execute(db);

/** Tells whether the provider's webhook of a repository has called. */
export async function isHeard(db: Database, of: RepositoryOf): Promise<boolean> {
  const found = await db
    .selectFrom('git_webhook')
    .select('id')
    .where('organization_id', '=', of.organization_id)
    .where('repository', '=', of.repository)
    .where('heard_at', 'is not', null)
    .executeTakeFirst();
  return found !== undefined;
}

/** Forgets that a webhook has called, which has not told of a commit that a poll found. */
export const unhear = (db: Database, of: RepositoryOf) =>
  db
    .updateTable('git_webhook')
    .set({ heard_at: null })
    .where('organization_id', '=', of.organization_id)
    .where('repository', '=', of.repository)
    .where('heard_at', '<', sql<Date>`now() - interval '1 minute'`)
    .execute();

/** Returns the recorded heads of the branches of a repository. */
export async function listHeads(db: Database, of: RepositoryOf): Promise<Map<string, string | null>> {
  const rows = await db
    .selectFrom('git_branch')
    .select(['branch', 'head'])
    .where('organization_id', '=', of.organization_id)
    .where('repository', '=', of.repository)
    .execute();
  return new Map(rows.map(({ branch, head }) => [branch, head]));
}

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
    .set({
      head,
      polled: head,
      // A lost call is looked for, whatever came in between.
      next_at: sql`case when wanted > 0 then next_at else greatest(next_at, now() + make_interval(secs => ${pollInSeconds})) end`,
    })
    .where('organization_id', '=', of.organization_id)
    .where('id', '=', id)
    .execute();
