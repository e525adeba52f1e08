import { ParsingError } from '#kernel/parsing/index.ts';
import { anySignal } from '#kernel/lease-signal.ts';
import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import { WorkLoop, type Lease, type WorkKind } from '#platform/work/index.ts';
import { listRestrictionsByServices } from '#services/capabilities/service/deployment-restrictions/index.ts';
import type { Kind } from '#services/kind.ts';
import { LONGEST_POLL_SECONDS } from '#services/pushes/branch-queries.ts';
import { applyPush } from '#services/pushes/apply.ts';
import { distinct, follows, listFollowers, type Follower } from '#services/pushes/followers.ts';
import type { ServiceOutcome } from '#services/pushes/outcome.ts';
import { readPushes, nameOf, type Push } from '#services/pushes/payload.ts';
import * as queries from '#services/pushes/queries.ts';
import { RepositoryError, type RepositoryReader } from '#services/sources/repository.ts';

/** Attempts to read what a push has changed, after which it is applied without that. */
const MOST_ATTEMPTS = 5;
const READ_MS = 60_000;

export interface PushParts {
  platform: Platform;
  kinds: Kind[];
  repositories: Pick<RepositoryReader, 'changes' | 'head'>;
}

const pushWork = (parts: PushParts): WorkKind<queries.PushClaim> => ({
  name: queries.PUSH_REPORT.name,
  leaseSeconds: 15,
  slots: 8,
  pollMs: 2_000,
  channel: queries.GIT_PUSHES,
  claim: queries.claimPushes,
  renew: queries.renew,
  giveBack: (db, claim, stoppedBy) => queries.giveBackPush(db, claim, stoppedBy, 15),
  run: (claim, lease) => runPush(parts, claim, lease),
  attempts: {
    most: MOST_ATTEMPTS,
    of: ({ attempts }) => attempts,
    giveUp: (claim, lease) => runPush({ ...parts, repositories: UNREAD }, claim, lease),
  },
  fields: ({ organization_id, id }) => ({ organizationId: organization_id, push: id }),
});

/** Makes the loop that applies pushes, in any number of processes. */
export const createPushLoop = (parts: PushParts, nodeId: string): WorkLoop<queries.PushClaim> =>
  new WorkLoop(pushWork(parts), { platform: parts.platform, nodeId });

/** Reader for pushes whose repository does not answer: their changes stay unknown, and every service that follows the branch is affected. */
const UNREAD: PushParts['repositories'] = {
  changes: () => Promise.resolve({ message: '', author: '', paths: null }),
  head: () => Promise.reject(new Error('The head of a push is known.')),
};

async function runPush(parts: PushParts, claim: queries.PushClaim, lease: Lease): Promise<void> {
  const { platform, kinds } = parts;
  const pushes = await readClaim(claim);
  if (typeof pushes === 'string') return queries.endPush(platform.db, claim, queries.outcomeColumns(null, pushes));
  const complete: Push[] = [];
  for (const push of pushes) complete.push(await withChanges(parts, claim, push, lease.signal));
  lease.hold();
  const [first] = complete;
  await inTransaction(systemContext(platform, 'git'), async (context) => {
    const outcomes: ServiceOutcome[] = [];
    for (const push of complete) {
      const actor = { userId: null, name: push.author, origin: 'GIT' as const, userAgent: null };
      outcomes.push(
        ...(await applyPush({ ...context, actor }, claim, push, {
          kinds,
          environmentIds: claim.environment_ids,
          isFirst: claim.event === null && claim.before_commit === null && claim.environment_ids === null,
          pollInSeconds: claim.event === null ? platform.settings.gitPollSeconds : LONGEST_POLL_SECONDS,
        })),
      );
    }
    await queries.endPush(context.db, claim, {
      ...queries.outcomeColumns(outcomes, null),
      branch: first?.branch ?? null,
      before_commit: first?.before ?? null,
      after_commit: first?.after ?? null,
    });
  });
}

/** Reads the pushes of a claim. Returns the reason if the call has none that makes sense. */
async function readClaim(claim: queries.PushClaim): Promise<Push[] | string> {
  const { event, body, branch, before_commit: before, after_commit: after } = claim;
  if (event === null)
    return [{ branch: branch!, isDefault: false, before, after, paths: null, message: '', author: '' }];
  try {
    return await readPushes(claim.organization_id, event, body ?? '');
  } catch (error) {
    if (error instanceof ParsingError && error.kind === 'busy') throw error;
    if (error instanceof ParsingError || error instanceof TypeError) return error.message.slice(0, 500);
    throw error;
  }
}

/** Adds what the sender of a push has not said: always after a poll, and the changed files where a service is deployed by them. */
async function withChanges(
  { platform, kinds, repositories }: PushParts,
  claim: queries.PushClaim,
  push: Push,
  signal: AbortSignal,
): Promise<Push> {
  if (push.after === null || (claim.event !== null && push.paths !== null)) return push;
  const scope = { organizationId: claim.organization_id };
  const followers = (await listFollowers(platform.db, scope, kinds)).filter(
    (one) => one.repository === claim.repository && follows(one, push),
  );
  const ids = followers.map(({ row }) => row.id);
  const isFiltered = (await listRestrictionsByServices(platform.db, scope, ids)).length > 0;
  if (followers.length === 0 || (claim.event !== null && !isFiltered)) return push;
  const found = await readChanges(repositories, scope.organizationId, followers, push, signal);
  return claim.event !== null ? { ...push, paths: found.paths } : { ...push, ...found, author: nameOf(found.author) };
}

/** Reads the changes with the tokens of the services, one after the other, until one is let in. */
async function readChanges(
  repositories: PushParts['repositories'],
  organizationId: string,
  followers: Follower[],
  push: Push,
  signal: AbortSignal,
) {
  const sources = distinct(followers.map(({ source }) => source));
  for (const [at, source] of sources.entries())
    try {
      return await repositories.changes({
        organizationId,
        url: source.url,
        branch: source.branch,
        gitTokenId: source.git_token_id,
        signal: anySignal([signal, AbortSignal.timeout(READ_MS)]),
        from: push.before,
        to: push.after!,
      });
    } catch (error) {
      if (!(error instanceof RepositoryError) || at === sources.length - 1) throw error;
    }
  throw new Error('A push without followers has no changes to read.');
}
