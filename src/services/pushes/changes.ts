import { anySignal } from '#kernel/lease-signal.ts';
import type { Database } from '#platform/database/index.ts';
import { listRestrictionsByServices } from '#services/capabilities/service/deployment-restrictions/index.ts';
import { distinct, type Follower } from '#services/pushes/followers.ts';
import { isSkipped, nameOf, type Push } from '#services/pushes/payload.ts';
import { RepositoryError, type RepositoryChanges, type RepositoryReader } from '#services/sources/repository.ts';

/** Time limit in milliseconds of the question for the changes of a push. */
const READ_MS = 60_000;

/** Changes of a push that cannot be read: every service that follows the branch is affected. */
const UNKNOWN: RepositoryChanges = { message: '', author: '', paths: null };

export interface ChangesRequest {
  organizationId: string;
  /** Services that follow the branch. */
  followers: Follower[];
  /**
   * `required`: throws RepositoryError where changes cannot be read. `optional`: they stay unknown then. `none`: nothing is read, since an
   * attempt to do so may have ended its process.
   */
  reading: 'required' | 'optional' | 'none';
  signal: AbortSignal;
}

/** Adds what the calls have not said of pushes to a branch: all of a bare one, and the changed files where a service is deployed by them. */
export async function withChanges(
  db: Database,
  repositories: Pick<RepositoryReader, 'changes'>,
  request: ChangesRequest,
  pushes: Push[],
): Promise<Push[]> {
  const { organizationId, followers } = request;
  if (followers.length === 0 || pushes.every(({ isBare, paths }) => !isBare && paths !== null)) return pushes;
  const ids = [...new Set(followers.map(({ row }) => row.id))];
  const isFiltered = (await listRestrictionsByServices(db, { organizationId }, ids)).length > 0;
  const found: Push[] = [];
  for (const push of pushes)
    if (push.isBare) found.push(complete(push, await changesOf(repositories, request, push)));
    else if (isFiltered && push.paths === null)
      found.push({ ...push, paths: (await changesOf(repositories, request, push)).paths });
    else found.push(push);
  return found;
}

const complete = (push: Push, { message, author, paths }: RepositoryChanges): Push => ({
  ...push,
  isSkipped: isSkipped(message),
  author: nameOf(author),
  paths,
});

async function changesOf(
  repositories: Pick<RepositoryReader, 'changes'>,
  { organizationId, followers, reading, signal }: ChangesRequest,
  push: Push,
): Promise<RepositoryChanges> {
  if (reading === 'none') return UNKNOWN;
  try {
    return await readChanges(repositories, organizationId, followers, push, signal);
  } catch (error) {
    if (reading === 'optional' && error instanceof RepositoryError) return UNKNOWN;
    throw error;
  }
}

/** Reads the changes with the tokens of the services, one after the other, until one is let in. Throws RepositoryError. */
export async function readChanges(
  repositories: Pick<RepositoryReader, 'changes'>,
  organizationId: string,
  followers: Pick<Follower, 'source'>[],
  push: Pick<Push, 'before' | 'after'>,
  signal: AbortSignal,
): Promise<RepositoryChanges> {
  const sources = distinct(followers.map(({ source }) => source));
  const limit = anySignal([signal, AbortSignal.timeout(READ_MS)]);
  for (const [at, source] of sources.entries())
    try {
      return await repositories.changes({
        organizationId,
        url: source.url,
        branch: source.branch,
        gitTokenId: source.git_token_id,
        signal: limit,
        from: push.before,
        to: push.after!,
      });
    } catch (error) {
      if (!(error instanceof RepositoryError) || limit.aborted || at === sources.length - 1) throw error;
    }
  throw new Error('A push without followers has no changes to read.');
}
