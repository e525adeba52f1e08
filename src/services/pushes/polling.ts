import { jittered } from '#kernel/jitter.ts';
import { newId } from '#kernel/ids.ts';
import type { Platform } from '#platform/context.ts';
import { requireHeld, WorkLoop, type Lease, type WorkKind } from '#platform/work/index.ts';
import type { Kind } from '#services/kind.ts';
import * as branches from '#services/pushes/branch-queries.ts';
import { branchOf, follows, listFollowers, sourcesOf } from '#services/pushes/followers.ts';
import { ASK_MS, askInTurn } from '#services/pushes/heads.ts';
import { GIT_PUSHES, insertPush } from '#services/pushes/queries.ts';
import type { PushParts } from '#services/pushes/work.ts';
import type { GitSource } from '#services/sources/git.ts';

/** First pause in seconds after a failure where polls are off. */
const SECONDS_WITHOUT_POLLS = 60;

const pollWork = (parts: PushParts): WorkKind<branches.BranchClaim> => ({
  name: branches.BRANCH_REPORT.name,
  leaseSeconds: 15,
  slots: 4,
  pollMs: 5_000,
  claim: (db, request) => branches.claimBranches(db, request, parts.platform.settings.gitPollSeconds > 0),
  renew: branches.renewBranches,
  giveBack: branches.giveBackBranch,
  run: (claim, lease) => pollBranch(parts, claim, lease),
  fields: ({ organization_id, repository, branch }) => ({ organizationId: organization_id, repository, branch }),
});

/** Makes the loop that polls branches: once for all services that follow one, in any number of processes. */
export const createPollLoop = (parts: PushParts, nodeId: string): WorkLoop<branches.BranchClaim> =>
  new WorkLoop(pollWork(parts), { platform: parts.platform, nodeId });

/** Records which branches are followed. */
export async function reconcileFollowed({ db }: Pick<Platform, 'db'>, kinds: Kind[]): Promise<void> {
  const followed = (await branches.listSpecs(db)).flatMap(({ organization_id, kind, spec }) =>
    sourcesOf(kind, spec, kinds).map(({ repository, source }) => ({
      organization_id,
      repository,
      branch: branchOf(source),
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
  const all = (await listFollowers(platform.db, scope, kinds)).filter((one) => one.repository === claim.repository);
  const followers = all.filter((one) => follows(one, claim.branch));
  // Any token of the repository may answer.
  const sources = followers.length > 0 ? [...followers, ...all].map(({ source }) => source) : [];
  const longest = branches.LONGEST_POLL_SECONDS;
  // A repository that hangs takes no slot of its process.
  lease.rest(true);
  const found = await askHead(parts, claim, sources, lease.signal).finally(() => lease.rest(false));
  lease.hold();
  // Without polls only lost calls are looked for.
  const interval = platform.settings.gitPollSeconds || SECONDS_WITHOUT_POLLS;
  const seconds =
    'error' in found
      ? Math.min(longest, interval * 2 ** Math.min(claim.failures + 1, 12))
      : followers.length === 0 || (await branches.isHeard(platform.db, claim))
        ? Math.max(longest, interval)
        : interval;
  await platform.db.transaction().execute(async (db) => {
    requireHeld(await branches.endPoll(db, claim, jittered(seconds), found));
    if ('error' in found || found.head === claim.head || found.head === claim.polled) return;
    // Where a call was lost the provider has called.
    if (claim.wanted === 0) await branches.unhear(db, claim);
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

function askHead(
  { repositories, askMs = ASK_MS }: PushParts,
  { organization_id: organizationId, branch }: branches.BranchClaim,
  sources: GitSource[],
  signal: AbortSignal,
): Promise<{ head: string } | { error: string }> {
  return askInTurn({ sources, askMs, signal }, async ({ url, git_token_id: gitTokenId }, limit) => ({
    head: await repositories.head({ organizationId, url, branch, gitTokenId, signal: limit }),
  }));
}
