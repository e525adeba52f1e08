import { storable } from '#kernel/storable.ts';
import { json } from '#platform/database/json.ts';
import { sql, type Database } from '#platform/database/index.ts';
import {
  renewalOf,
  withDate,
  type ClaimRequest,
  type RowClaim,
  type WorkReport,
  type WorkStatus,
} from '#platform/work/index.ts';
import { DEPLOYS_ITSELF, type RepositoryOf } from '#services/pushes/queries.ts';

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
}

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
  await sql`delete from git_branch b where created_at < now() - interval '1 day' and not exists (
    select from ${given} where f.organization_id = b.organization_id and f.repository = b.repository and f.branch = b.branch)`.execute(
    db,
  );
}

/** Claims branches that are due, the longest due first. */
export async function claimBranches(db: Database, { limit, leaseSeconds }: ClaimRequest): Promise<BranchClaim[]> {
  const { rows } = await sql<BranchClaim>`
    update git_branch set claim_token = gen_random_uuid(), lease_until = clock_timestamp() + make_interval(secs => ${leaseSeconds})
    where id in (
      select id from git_branch where next_at <= clock_timestamp() and (lease_until is null or lease_until < clock_timestamp())
      order by next_at limit ${limit} for update skip locked)
    returning id, organization_id, repository, branch, head, polled, failures, claim_token as token`.execute(db);
  return rows;
}

export const renewBranches = renewalOf('git_branch');

const ofClaim = (db: Database, claim: BranchClaim) =>
  db
    .updateTable('git_branch')
    .where('organization_id', '=', claim.organization_id)
    .where('id', '=', claim.id)
    .where('claim_token', '=', claim.token);

const RELEASED = { claim_token: null, lease_until: null };
const inSeconds = (seconds: number) => sql<Date>`now() + make_interval(secs => ${seconds})`;

/** Writes the end of a poll: the head that it found, or why it found none. False if the claim is lost. */
export async function endPoll(
  db: Database,
  claim: BranchClaim,
  seconds: number,
  found: { head: string } | { error: string },
): Promise<boolean> {
  const { numUpdatedRows } = await ofClaim(db, claim)
    .set({
      ...RELEASED,
      polled_at: sql`now()`,
      next_at: sql`greatest(next_at, ${inSeconds(seconds)})`,
      ...('head' in found
        ? { polled: found.head, failures: 0, error: null }
        : { failures: sql`failures + 1`, error: storable(found.error).slice(0, 500) }),
    })
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Releases a branch; after a failure it is due again later. */
export const giveBackBranch = (db: Database, claim: BranchClaim, stoppedBy: 'order' | 'failure') =>
  ofClaim(db, claim)
    .set(stoppedBy === 'order' ? RELEASED : { ...RELEASED, failures: sql`failures + 1`, next_at: inSeconds(60) })
    .execute();

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

/** Figures of polls, for operators. */
export const BRANCH_REPORT: WorkReport = {
  name: 'git-branches',
  async status(db) {
    const isHeld = sql`(claim_token is not null and coalesce(lease_until > clock_timestamp(), false))`;
    const isDue = sql`(not ${isHeld} and next_at <= clock_timestamp())`;
    const { rows } = await sql<WorkStatus>`
      select count(*) filter (where ${isDue}) as waiting, count(*) filter (where ${isHeld}) as running,
        min(next_at) filter (where ${isDue}) as "oldestWaiting", count(*) filter (where failures > 0) as retried,
        (select json_build_object('at', polled_at, 'error', repository || ': ' || error) from git_branch
          where error is not null and polled_at is not null order by polled_at desc limit 1) as "lastFailure"
      from git_branch`.execute(db);
    return withDate(rows[0]!);
  },
};
