import { anySignal } from '#kernel/lease-signal.ts';
import { invalidField } from '#kernel/errors.ts';
import { isId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { RepositoryError, type RepositoryReader } from '#services/sources/repository.ts';

/** Timeout for a repository to name its default branch, in milliseconds; after it the service gets `main`. */
const ANSWER_TIMEOUT_MS = 5000;
const MAX_DEPTH = 8;

/** Repository in a body, as far as this file reads it. */
interface NamedRepository {
  url: string;
  branch?: string | null;
  git_token_id?: string | null;
}

/** Scope of the services of a body; `spec` is the stored configuration of a service that is edited. */
export interface RepositoryPlace {
  organizationId: string;
  runtime: string;
  spec: unknown;
}

/** Tells whether a body names a repository that must be asked: one without a branch, or a folder of this machine. */
export const namesRepositoryToAsk = (body: unknown): boolean => toAskIn(body).length > 0;

/**
 * Sets the branch of each repository in a body that has none to that of its HEAD. An unchanged repository keeps its branch; one that does
 * not answer in time gets `main` later, when the configuration is made. Throws 400 for a folder of this machine that may not be read.
 */
export async function askRepositories(
  repositories: RepositoryReader,
  { organizationId, runtime, spec }: RepositoryPlace,
  { body, log, signal }: Pick<Context, 'log'> & { body: unknown; signal: AbortSignal },
): Promise<void> {
  const stored = new Set(repositoriesIn(spec).map(({ repository }) => repository.url));
  const limit = anySignal([signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
  const ask = async ({ field, repository }: Found): Promise<void> => {
    const { url, git_token_id: token } = repository;
    // The fake runtime asks only folders of this machine. An unknown token is refused with the rest of the body.
    if (stored.has(url) || (runtime === 'fake' && !isLocal(url)) || (token && !isId(token))) return;
    try {
      // Folders of this machine are read without a token.
      const gitTokenId = isLocal(url) ? null : token || null;
      const address = { organizationId, url, branch: 'HEAD', gitTokenId, signal: limit };
      const branch = await repositories.defaultBranch(address);
      if (!repository.branch && branch !== undefined) repository.branch = branch;
    } catch (error) {
      if (isLocal(url) && error instanceof RepositoryError && error.reason === 'refused')
        throw invalidField(`${field}.url`, error.message);
      log.info({ err: error }, 'a repository did not say which branch is its own');
    }
  };
  await Promise.all(toAskIn(body).map(ask));
}

const isLocal = (url: string): boolean => url.startsWith('/') || url.startsWith('file:');

interface Found {
  /** Path of the repository in the body. */
  field: string;
  repository: NamedRepository;
}

const toAskIn = (body: unknown): Found[] =>
  repositoriesIn(body).filter(({ repository }) => !repository.branch || isLocal(repository.url));

/** Returns the objects that stand under `git_repository`, at any depth. */
function repositoriesIn(value: unknown, path = '', depth = 0): Found[] {
  if (value === null || typeof value !== 'object' || depth > MAX_DEPTH) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const field = path ? `${path}.${key}` : key;
    if (key === 'git_repository' && isRepository(inner)) return [{ field, repository: inner }];
    return repositoriesIn(inner, field, depth + 1);
  });
}

const isRepository = (value: unknown): value is NamedRepository =>
  value !== null && typeof value === 'object' && 'url' in value && typeof value.url === 'string';
