import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import { WorkLoop, type Lease, type WorkKind } from '#platform/work/index.ts';
import type { Kind } from '#services/kind.ts';
import { applyMoves } from '#services/pushes/apply.ts';
import { readBatch, withPaths, type BatchRow } from '#services/pushes/batch.ts';
import { listHeads, LONGEST_POLL_SECONDS, wantPolls } from '#services/pushes/branch-queries.ts';
import { withChanges, type ChangesRequest } from '#services/pushes/changes.ts';
import { findEndings } from '#services/pushes/endings.ts';
import { branchOf, follows, HEAD, listFollowers, listOthers, type Follower } from '#services/pushes/followers.ts';
import { ASK_MS, askHeads, moveTo, polledHead, type BranchMove } from '#services/pushes/heads.ts';
import { itemWork } from '#services/pushes/item-work.ts';
import type { Push } from '#services/pushes/payload.ts';
import * as queries from '#services/pushes/queries.ts';
import type { RepositoryReader } from '#services/sources/repository.ts';

/** Attempts to read what a push has changed, after which it is applied without that where it cannot be read. */
const MOST_ATTEMPTS = 5;
/** Hours after which a push to a repository that does not answer is left to polls. */
const DEADLINE_HOURS = 24;

export interface PushParts {
  platform: Platform;
  kinds: Kind[];
  repositories: Pick<RepositoryReader, 'changes' | 'head' | 'heads'>;
  /** Time limit in milliseconds of an attempt to ask a repository for heads; 20 s unless it is said. */
  askMs?: number;
}

type Reading = ChangesRequest['reading'];

const pushWork = (parts: PushParts): WorkKind<queries.PushClaim> =>
  itemWork({
    table: queries.PUSHES,
    slots: 8,
    channel: queries.GIT_PUSHES,
    claim: queries.claimPushes,
    run: (claim, lease) => runPush(parts, claim, lease, 'required'),
    mostAttempts: MOST_ATTEMPTS,
    giveUp: (claim, lease) => runPush(parts, claim, lease, claim.attempts === MOST_ATTEMPTS + 1 ? 'optional' : 'none'),
    item: 'push',
  });

/** Makes the loop that applies pushes, in any number of processes. */
export const createPushLoop = (parts: PushParts, nodeId: string): WorkLoop<queries.PushClaim> =>
  new WorkLoop(pushWork(parts), { platform: parts.platform, nodeId });

/**
 * Applies a push, and those to its repository that wait behind it: many pushes in a short time are one transaction. A branch moves to the commit
 * that its repository names as its head, whatever the pushes say (docs/decisions/0098-a-repository-says-where-its-branches-are.md).
 */
async function runPush(parts: PushParts, claim: queries.PushClaim, lease: Lease, reading: Reading): Promise<void> {
  const { platform, kinds } = parts;
  const batch = await readBatch(platform, claim, lease);
  if (!batch) return;
  // A repository that hangs takes no slot of its process.
  lease.rest(true);
  const found = await findMoves(parts, claim, batch, { reading, signal: lease.signal }).finally(() =>
    lease.rest(false),
  );
  lease.hold();
  if ('error' in found) return postpone(platform, claim, batch, found.error);
  const options = {
    kinds,
    environmentIds: claim.environment_ids,
    pollInSeconds: batch.some(({ row }) => !row.is_poll) ? LONGEST_POLL_SECONDS : platform.settings.gitPollSeconds,
  };
  await inTransaction(systemContext(platform, 'git'), async (context) => {
    const { db } = context;
    const { ended, refused, unconfirmed, untouched } = await findEndings(db, claim, batch, found.moves);
    // Before any branch of the repository is locked alone.
    if (refused.length > 0) await wantPolls(db, claim);
    const outcomes = await applyMoves(context, claim, found.moves, options);
    await queries.endRows(db, claim, ended, queries.outcomeColumns(outcomes, null));
    for (const { id, error } of refused) await queries.endRows(db, claim, [id], queries.outcomeColumns(null, error));
    for (const { id, asks } of unconfirmed) await queries.putOffRow(db, claim, id, pauseOf(asks));
    await queries.forgetErrors(db, claim, untouched);
  });
}

/** Finds where branches move, and with which changes; or why the repository does not say it. */
async function findMoves(
  parts: PushParts,
  claim: queries.PushClaim,
  batch: BatchRow[],
  { reading, signal }: Pick<ChangesRequest, 'reading' | 'signal'>,
): Promise<{ moves: BranchMove[] } | { error: string }> {
  const { platform, kinds, repositories } = parts;
  const { organization_id: organizationId, repository } = claim;
  const all = await listFollowers(platform.db, { organizationId }, kinds);
  const followers = all.filter((one) => one.repository === repository);
  const found = claim.environment_ids
    ? [putOffMove(claim, batch[0]!.pushes)]
    : await movesOf(parts, claim, batch, followers, signal);
  if ('error' in found) return found;
  const moves: BranchMove[] = [];
  for (const move of found) {
    const request = {
      organizationId,
      followers: followers.filter((one) => follows(one, move.branch)),
      reading,
      signal,
    };
    const pushes = await withPaths(platform.db, claim, batch, move.pushes);
    moves.push({ ...move, pushes: await withChanges(platform.db, repositories, request, pushes) });
  }
  return { moves };
}

/** Returns the move of a push that was put off for some environments: its branch has moved already. */
const putOffMove = ({ branch, after_commit: named }: queries.PushClaim, pushes: Push[]): BranchMove => ({
  branch: branch!,
  recorded: named,
  named,
  head: named,
  pushes,
  isFirst: false,
});

/** Finds where branches move that services follow, and asks the repository unless a poll just has. */
async function movesOf(
  { platform: { db }, repositories, askMs = ASK_MS }: PushParts,
  claim: queries.PushClaim,
  batch: BatchRow[],
  followers: Follower[],
  signal: AbortSignal,
): Promise<BranchMove[] | { error: string }> {
  const sources = [...followers, ...(await listOthers(db, claim))].map(({ source }) => source);
  const recorded = await listHeads(db, claim);
  const toldOf = tellings(batch);
  const branches = [...new Set(sources.map(branchOf))].filter((branch) => toldOf(branch).length > 0);
  const polled = new Map(branches.map((branch) => [branch, polledHead(recorded.get(branch) ?? null, toldOf(branch))]));
  const unknown = branches.filter((branch) => polled.get(branch) === undefined);
  // Any token of the repository may answer; those of services that follow the branches are asked first.
  const isAsked = (source: Follower['source']) => unknown.includes(branchOf(source));
  const inTurn = [...sources.filter(isAsked), ...sources.filter((source) => !isAsked(source))];
  const question = { organizationId: claim.organization_id, sources: inTurn, branches: unknown, askMs, signal };
  const asked = unknown.length > 0 ? await askHeads(repositories, question) : new Map<string, string | null>();
  if ('error' in asked) return asked;
  return branches.map((branch) =>
    moveTo(
      branch,
      recorded.get(branch) ?? null,
      polled.get(branch) ?? asked.get(branch) ?? null,
      toldOf(branch).map(({ push }) => push),
    ),
  );
}

/** Makes the function that returns the pushes about a branch. Each call may be about `HEAD`. */
function tellings(batch: BatchRow[]) {
  const told = batch.flatMap(({ row, pushes }) => pushes.map((push) => ({ push, isPoll: row.is_poll })));
  const byBranch = Map.groupBy(told, ({ push }) => push.branch);
  const ofHead = told.filter(({ push, isPoll }) => push.branch === HEAD || (!isPoll && push.after !== null));
  return (branch: string) => (branch === HEAD ? ofHead : (byBranch.get(branch) ?? []));
}

/** Puts off the pushes of a repository that does not answer. Polls find those that have waited too long. */
const postpone = (platform: Platform, claim: queries.PushClaim, batch: BatchRow[], error: string): Promise<void> =>
  inTransaction(systemContext(platform, 'git'), async ({ db }) => {
    const rows = batch.map(({ row }) => row);
    const late = rows.filter(({ hours }) => hours >= DEADLINE_HOURS).map(({ id }) => id);
    if (late.length > 0) await wantPolls(db, claim);
    await queries.endRows(db, claim, late, queries.outcomeColumns(null, error));
    for (const { id, failures, hours, is_due } of rows)
      if (is_due && hours < DEADLINE_HOURS)
        await queries.postponeRow(db, claim, id, { error, seconds: pauseOf(failures) });
  });

/** Seconds until a repository is asked again: from 2 to 600, apart from each other for pushes that came together. */
const pauseOf = (times: number): number => Math.min(600, 2 ** (times + 1)) * (0.75 + Math.random() / 2);
