import { anySignal } from '#kernel/lease-signal.ts';
import { distinct } from '#services/pushes/followers.ts';
import { barePush, type Push } from '#services/pushes/payload.ts';
import { RepositoryError, type RepositoryReader } from '#services/sources/repository.ts';
import type { GitSource } from '#services/sources/git.ts';

/** Time limit in milliseconds of an attempt to ask a repository for heads. */
export const ASK_MS = 20_000;

/** Pushes between two heads that count with what their calls said: of more, git says what differs. */
const LONGEST_CHAIN = 50;

/** Heads that a repository names, null for a branch that it lacks; or why it names none. */
export type Heads = Map<string, string | null> | { error: string };

export interface Question {
  organizationId: string;
  /** Sources with whose tokens the repository is asked, the first ones first. */
  sources: GitSource[];
  branches: string[];
  /** Time limit of each attempt in milliseconds; all of them together take twice that. */
  askMs: number;
  signal: AbortSignal;
}

/** Asks for the heads of branches with the tokens of services, one after the other, until one is let in. */
export async function askHeads(
  repositories: Pick<RepositoryReader, 'heads'>,
  { organizationId, sources, branches, askMs, signal }: Question,
): Promise<Heads> {
  const question = { organizationId, branch: 'HEAD', branches };
  return askInTurn({ sources, askMs, signal }, ({ url, git_token_id: gitTokenId }, limit) =>
    repositories.heads({ ...question, url, gitTokenId, signal: limit }),
  );
}

/**
 * Asks a repository with the tokens of services, one after the other, until one is let in. An address that does not answer is not asked with
 * another token. Returns the reason if no source gets an answer.
 */
export async function askInTurn<T>(
  { sources, askMs, signal }: Pick<Question, 'sources' | 'askMs' | 'signal'>,
  ask: (source: GitSource, signal: AbortSignal) => Promise<T>,
): Promise<T | { error: string }> {
  let error = 'No service follows the branch any more.';
  const deadline = AbortSignal.timeout(2 * askMs);
  const silent = new Set<string>();
  for (const source of distinct(sources)) {
    if (silent.has(source.url) || deadline.aborted) continue;
    try {
      return await ask(source, anySignal([signal, deadline, AbortSignal.timeout(askMs)]));
    } catch (failure) {
      if (!(failure instanceof RepositoryError)) throw failure;
      if (failure.reason === 'unreachable') silent.add(source.url);
      error = failure.message;
    }
  }
  return { error };
}

/** Move of a branch to the head that its repository names. */
export interface BranchMove {
  /** Branch, or `HEAD`. */
  branch: string;
  /** Head that was recorded when the repository was asked. */
  recorded: string | null;
  /** Head that the repository names; null for a branch that it lacks. */
  named: string | null;
  /** Head to record: no commit only where a push says that the branch was deleted. */
  head: string | null;
  /** Pushes that lead from the recorded head to the named one, oldest first. None if the branch stays where it is, or is gone. */
  pushes: Push[];
  /** True for the first commit that a poll finds of a branch: only services follow it that were deployed from another one. */
  isFirst: boolean;
}

/** Decides how a branch gets from the recorded head to the one that its repository names. */
export function moveTo(branch: string, recorded: string | null, named: string | null, told: Push[]): BranchMove {
  const isDeleted = named === null && told.some(({ after }) => after === null);
  const move = { branch, recorded, named, head: isDeleted ? null : (named ?? recorded), pushes: [], isFirst: false };
  if (named === null || named === recorded) return move;
  const { chain, from } = chainTo(told, named, recorded);
  if (recorded === null ? chain[0]?.isBare === false : from === recorded) return { ...move, pushes: shortened(chain) };
  // A push was lost, or what was told is old: git says what differs.
  const last = told.findLast(({ after, isBare }) => after === named && !isBare);
  const push = last ? { ...last, before: recorded, paths: null } : barePush(branch, recorded, named);
  // A call of the branch came, and the one of its head is still on its way.
  const isCalled = told.some((one) => !one.isBare && one.after !== null && (one.branch === branch || one.isDefault));
  return { ...move, pushes: [push], isFirst: recorded === null && !isCalled };
}

/** Returns a chain of which the oldest pushes are one where it is longer than the limit: git says what that one has changed. */
function shortened(chain: Push[]): Push[] {
  const old = chain.slice(0, 1 - LONGEST_CHAIN);
  if (chain.length <= LONGEST_CHAIN) return chain;
  const isSkipped = old.every((push) => push.isSkipped);
  return [{ ...old.at(-1)!, before: chain[0]!.before, paths: null, isSkipped }, ...chain.slice(1 - LONGEST_CHAIN)];
}

/** Returns the gapless pushes that end at a commit, and where the first of them begins. */
function chainTo(told: Push[], end: string, start: string | null): { chain: Push[]; from: string | null } {
  const byAfter = Map.groupBy(told, ({ after }) => after);
  const chain: Push[] = [];
  let from: string | null = end;
  while (from !== start && from !== null) {
    const next: Push | undefined = byAfter.get(from)?.pop();
    if (!next) break;
    chain.push(next);
    from = next.before;
  }
  return { chain: chain.reverse(), from };
}

/** Returns the head that polls found, where it follows the recorded one; undefined where the repository must be asked. */
export function polledHead(recorded: string | null, told: { push: Push; isPoll: boolean }[]): string | undefined {
  let head = recorded;
  for (const { push, isPoll } of told) {
    if (!isPoll || (head !== null && push.before !== head)) return undefined;
    head = push.after;
  }
  return head ?? undefined;
}

/**
 * Makes the condition that a repository confirms a push: it names its commit as the head of the branch, or a later one, as far as the pushes `told`
 * and those that were applied before lead to it. `succeeded`: commits at which applied pushes begin. A deletion is confirmed when the branch is
 * gone, and when it was made again or has another head.
 */
export function confirmationOf(
  { named, recorded }: BranchMove,
  told: Push[],
  succeeded: Iterable<string>,
): (push: Push) => boolean {
  const isMadeAgain = told.some(({ before, after }) => before === null && after !== null);
  const isOver = (deletion: Push) => named === null || isMadeAgain || deletion.before !== named;
  const byAfter = Map.groupBy(told, ({ after }) => after);
  const found = new Set<string>();
  const left = [named, recorded, ...succeeded, ...(byAfter.get(null) ?? []).filter(isOver).map(({ before }) => before)];
  for (let commit = left.pop(); commit !== undefined; commit = left.pop())
    if (commit !== null && !found.has(commit)) {
      found.add(commit);
      left.push(...(byAfter.get(commit) ?? []).map(({ before }) => before));
    }
  return (push) => (push.after === null ? isOver(push) : found.has(push.after));
}
