import { ParsingError } from '#kernel/parsing/index.ts';
import { anySignal } from '#kernel/lease-signal.ts';
import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import { WorkLoop, type Lease, type WorkKind } from '#platform/work/index.ts';
import { listRestrictionsByServices } from '#services/capabilities/service/deployment-restrictions/index.ts';
import type { Kind } from '#services/kind.ts';
import { LONGEST_POLL_SECONDS } from '#services/pushes/branch-queries.ts';
import { applyPushes } from '#services/pushes/apply.ts';
import { distinct, follows, listFollowers, type Follower } from '#services/pushes/followers.ts';
import { readPushes, nameOf, type Push } from '#services/pushes/payload.ts';
import * as queries from '#services/pushes/queries.ts';
import { RepositoryError, type RepositoryReader } from '#services/sources/repository.ts';

/** Attempts to read what a push has changed, after which it is applied without that. */
const MOST_ATTEMPTS = 5;
const READ_MS = 60_000;
/** Pushes that are applied together with the first of their repository. */
const MOST_AT_ONCE = 50;

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

/**
 * Applies a push, and those to its repository that wait behind it: many pushes in a short time are one transaction. None of them is claimed by
 * another process as long as the first has not ended.
 */
async function runPush(parts: PushParts, claim: queries.PushClaim, lease: Lease): Promise<void> {
  const { platform, kinds } = parts;
  const isFirst = claim.event === null && claim.before_commit === null && claim.environment_ids === null;
  const isAlone = isFirst || claim.environment_ids !== null;
  const batch = [claim, ...(isAlone ? [] : await queries.listBehind(platform.db, claim, MOST_AT_ONCE))];
  const read: { row: queries.PushRow; pushes: Push[]; error: string | null }[] = [];
  for (const row of batch) {
    const found = await readRow(row);
    const pushes: Push[] = [];
    for (const push of typeof found === 'string' ? [] : found)
      pushes.push(await withChanges(parts, row, push, lease.signal));
    read.push({ row, pushes, error: typeof found === 'string' ? found : null });
  }
  lease.hold();
  await inTransaction(systemContext(platform, 'git'), async (context) => {
    const outcomes = await applyPushes(
      context,
      claim,
      read.flatMap(({ pushes }) => pushes),
      {
        kinds,
        environmentIds: claim.environment_ids,
        isFirst,
        pollInSeconds: claim.event === null ? platform.settings.gitPollSeconds : LONGEST_POLL_SECONDS,
      },
    );
    for (const { row, pushes, error } of read) {
      const columns = { ...queries.outcomeColumns(error === null ? outcomes : null, error), ...commitsOf(pushes[0]) };
      if (row === claim) await queries.endPush(context.db, claim, columns);
      else await queries.endBehind(context.db, row, columns);
    }
  });
}

const commitsOf = (push: Push | undefined) =>
  push ? { branch: push.branch, before_commit: push.before, after_commit: push.after } : {};

/** Reads the pushes of a row. Returns the reason if the call has none that makes sense. */
async function readRow(row: queries.PushRow): Promise<Push[] | string> {
  const { event, body, branch, before_commit: before, after_commit: after } = row;
  if (event === null)
    return [{ branch: branch!, isDefault: false, before, after, paths: null, message: '', author: '' }];
  try {
    return await readPushes(row.organization_id, event, body ?? '');
  } catch (error) {
    if (error instanceof ParsingError && error.kind === 'busy') throw error;
    if (error instanceof ParsingError || error instanceof TypeError) return error.message.slice(0, 500);
    throw error;
  }
}

/** Adds what the sender of a push has not said: always after a poll, and the changed files where a service is deployed by them. */
async function withChanges(
  { platform, kinds, repositories }: PushParts,
  claim: queries.PushRow,
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
