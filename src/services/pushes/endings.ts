import type { Database } from '#platform/database/index.ts';
import type { BatchRow } from '#services/pushes/batch.ts';
import { HEAD } from '#services/pushes/followers.ts';
import { confirmationOf, type BranchMove } from '#services/pushes/heads.ts';
import type { Push } from '#services/pushes/payload.ts';
import { listSucceeded, type PushRow, type RepositoryOf } from '#services/pushes/queries.ts';

/** Questions, within about a minute, after which an unconfirmed push is refused. */
const MOST_ASKS = 5;

/** Rows of a batch whose repository has answered, by what becomes of them. */
export interface Endings {
  /** Ids of rows that have ended. */
  ended: string[];
  /** Rows that the repository did not confirm in time. */
  refused: { id: string; error: string }[];
  /** Rows that it is asked about again: large providers may name a new head seconds after their call. */
  unconfirmed: PushRow[];
  /** Ids of rows with an error that are not due yet, and wait on. */
  untouched: string[];
}

/** Decides what becomes of the rows of a batch. What a poll has found and the branch has left is old news. */
export async function findEndings(
  db: Database,
  of: RepositoryOf,
  batch: BatchRow[],
  moves: BranchMove[],
): Promise<Endings> {
  const endings: Endings = { ended: [], refused: [], unconfirmed: [], untouched: [] };
  const judge = await judgeOf(db, of, batch, moves);
  for (const { row, pushes } of batch) {
    const error = row.is_poll ? undefined : pushes.map(judge).find((one) => one !== undefined);
    if (error === undefined) endings.ended.push(row.id);
    else if (!row.is_due) {
      if (row.error !== null) endings.untouched.push(row.id);
    } else if (row.asks < MOST_ASKS) endings.unconfirmed.push(row);
    else endings.refused.push({ id: row.id, error });
  }
  return endings;
}

/** Makes the function that returns why the repository does not confirm a push; undefined if it does. */
async function judgeOf(db: Database, of: RepositoryOf, batch: BatchRow[], moves: BranchMove[]) {
  const told = batch.flatMap(({ pushes }) => pushes);
  const branches = [...new Set(told.map(({ branch }) => branch))];
  const commits = [...new Set(told.flatMap(({ after }) => after ?? []))];
  const succeeded = await listSucceeded(db, of, { branches, commits });
  const judges = moves.map((move) => {
    const own = told.filter((push) => isAbout(move, push));
    const ends = [...new Set(own.map(({ branch }) => branch))].flatMap((branch) => succeeded.get(branch) ?? []);
    return { move, isConfirmed: confirmationOf(move, own, ends) };
  });
  return (push: Push): string | undefined => {
    const found = judges.find(({ move, isConfirmed }) => isAbout(move, push) && !isConfirmed(push));
    return found && unconfirmed(push, found.move);
  };
}

const isAbout = ({ branch }: BranchMove, push: Push): boolean =>
  branch === push.branch || (branch === HEAD && push.isDefault);

const unconfirmed = ({ branch, after }: Push, { named }: BranchMove): string =>
  `The push of ${after ?? 'no commit'} to ${branch} was not applied: the repository names ${named ?? 'no commit'} as its head.`;
