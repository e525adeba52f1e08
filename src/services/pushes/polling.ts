import { anySignal } from '#kernel/lease-signal.ts';
import { newId } from '#kernel/ids.ts';
import type { Platform } from '#platform/context.ts';
import { requireHeld, WorkLoop, type Lease, type WorkKind } from '#platform/work/index.ts';
import type { Kind } from '#services/kind.ts';
import * as branches from '#services/pushes/branch-queries.ts';
import { distinct, listFollowers, sourcesOf } from '#services/pushes/followers.ts';
import { GIT_PUSHES, insertPush } from '#services/pushes/queries.ts';
import type { PushParts } from '#services/pushes/work.ts';
import { RepositoryError } from '#services/sources/repository.ts';
import type { GitSource } from '#services/sources/git.ts';

/** Time limit in milliseconds of the question for a head. */
const ASK_MS = 60_000;

const pollWork = (parts: PushParts): WorkKind<branches.BranchClaim> => ({
  name: branches.BRANCH_REPORT.name,
  leaseSeconds: 15,
  slots: 4,
  pollMs: 5_000,
  claim: async (db, request) =>
    parts.platform.settings.gitPollSeconds === 0 ? [] : branches.claimBranches(db, request),
  renew: branches.renewBranches,
  giveBack: branches.giveBackBranch,
  run: (claim, lease) => pollBranch(parts, claim, lease),
  fields: ({ organization_id, repository, branch }) => ({ organizationId: organization_id, repository, branch }),
});

/** Makes the loop that asks repositories for the heads of branches, once for all services that follow one, in any number of processes. */
export const createPollLoop = (parts: PushParts, nodeId: string): WorkLoop<branches.BranchClaim> =>
  new WorkLoop(pollWork(parts), { platform: parts.platform, nodeId });

/** Records which branches are followed. */
export async function reconcileFollowed({ db }: Pick<Platform, 'db'>, kinds: Kind[]): Promise<void> {
  const followed = (await branches.listSpecs(db)).flatMap(({ organization_id, kind, spec }) =>
    sourcesOf(kind, spec, kinds).map(({ repository, source }) => ({
      organization_id,
      repository,
      branch: source.branch,
    })),
  );
  await branches.reconcileBranches(db, followed);
}

/**
 * Asks for the head of a branch, and stores a push where it has moved. A repository that fails is asked ever more seldom, and one whose webhook has
 * called once an hour, for calls that were lost.
 */
async function pollBranch(parts: PushParts, claim: branches.BranchClaim, lease: Lease): Promise<void> {
  const { platform, kinds } = parts;
  const scope = { organizationId: claim.organization_id };
  const followers = (await listFollowers(platform.db, scope, kinds)).filter(
    ({ repository, source }) => repository === claim.repository && source.branch === claim.branch,
  );
  const longest = branches.LONGEST_POLL_SECONDS;
  const found = await askHead(parts, claim, followers.map(({ source }) => source), lease.signal); // prettier-ignore
  lease.hold();
  const { gitPollSeconds: interval } = platform.settings;
  const seconds =
    'error' in found
      ? Math.min(longest, interval * 2 ** Math.min(claim.failures + 1, 12))
      : followers.length === 0 || (await branches.isHeard(platform.db, claim))
        ? Math.max(longest, interval)
        : interval;
  await platform.db.transaction().execute(async (db) => {
    requireHeld(await branches.endPoll(db, claim, jittered(seconds), found));
    if ('error' in found || found.head === claim.head || found.head === claim.polled) return;
    await branches.unhear(db, claim);
    const { organization_id, repository, branch } = claim;
    await insertPush(db, {
      id: newId(),
      organization_id,
      repository,
      delivery_id: newId(),
      event: null,
      branch,
      before_commit: claim.polled ?? claim.head,
      after_commit: found.head,
    });
  });
  platform.notify(GIT_PUSHES);
}

/** Asks with the tokens of the services, one after the other, until one is let in. */
async function askHead(
  { repositories }: PushParts,
  { organization_id: organizationId, branch }: branches.BranchClaim,
  sources: GitSource[],
  signal: AbortSignal,
): Promise<{ head: string } | { error: string }> {
  let last = 'No service follows the branch any more.';
  for (const { url, git_token_id: gitTokenId } of distinct(sources))
    try {
      const limit = anySignal([signal, AbortSignal.timeout(ASK_MS)]);
      return { head: await repositories.head({ organizationId, url, branch, gitTokenId, signal: limit }) };
    } catch (error) {
      if (!(error instanceof RepositoryError)) throw error;
      last = error.message;
    }
  return { error: last };
}

/** Spreads polls, so that repositories which were added together are not asked together for ever. */
const jittered = (seconds: number): number => seconds * (0.9 + Math.random() * 0.2);
