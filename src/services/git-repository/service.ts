import { anySignal } from '#kernel/lease-signal.ts';
import path from 'node:path';
import { badRequest, invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { createHttpClient, type HttpClient } from '#platform/http-client/index.ts';
import {
  accessOf,
  findGitTokenById,
  listProvidedBranches,
  listProvidedRepositories,
  listUsableGitTokens,
  ProviderError,
  toAppError,
  type GitTokenRow,
  type Provider,
  type ProviderAccess,
} from '#resources/git-token/index.ts';
import type { DirectoriesInput } from '#services/git-repository/schema.ts';
import { toGitSource } from '#services/sources/git.ts';
import { addressOf, readingGiven, type RepositoryReader } from '#services/sources/repository.ts';

/** Request to a git provider: caller, organizations whose tokens may be used, and the named token, if any. */
export interface Asking {
  context: Context & { signal: AbortSignal };
  organizationIds: string[];
  provider: Provider;
  gitTokenId?: string | undefined;
}

/** Timeout of all pages of a list together, in milliseconds. */
const TIMEOUT_MS = 30_000;
const MAX_DIRECTORIES = 10_000;

/** Shows the provider and the owner of a git token. */
export const toAuthProviderView = (row: GitTokenRow) => ({
  id: row.id,
  name: row.type,
  owner: row.workspace || row.name,
  use_bot: false,
});

/** Lists the repositories that a provider shows to a git token; none if the organizations have no token of that provider. */
export async function listRepositories(asking: Asking) {
  const found = await askingProvider(asking, (http, access, token) =>
    listProvidedRepositories(http, access, token.workspace || null),
  );
  return found ?? [];
}

/** Lists the branches of a repository. Throws 400 without its name, or if the provider has no such repository. */
export async function listBranches(asking: Asking, name: string | undefined) {
  const repository = checkName(asking.provider, name);
  const found = await askingProvider(asking, (http, access) => listProvidedBranches(http, access, repository), 'name');
  return found ?? [];
}

/** Lists the directories within a directory of a repository, in the form of `root_path`. Throws 400 if there is no such directory. */
export async function listDirectories(
  context: Context & { signal: AbortSignal },
  repositories: RepositoryReader,
  organizationId: string,
  input: DirectoriesInput,
) {
  // Error messages name fields at the top of the body, not within a `git_repository`.
  const source = await toGitSource(context, { organizationId }, { ...input, branch: input.branch ?? 'HEAD' }, null, '');
  const root = path.posix.join('/', source.root_path).replace(/\/$/, '');
  const files = await readingGiven(repositories.listFiles(addressOf(organizationId, source, context.signal)));
  const inside = files.map((file) => `/${file}`).filter((file) => file.startsWith(`${root}/`));
  if (inside.length === 0 && root !== '')
    throw invalidField('root_path', `the branch has no directory ${root.slice(1)}: name one that it has`);
  const names = new Set(inside.map((file) => file.slice(root.length + 1)).filter((file) => file.includes('/')));
  const results = [...new Set([...names].map((file) => `${root}/${file.split('/')[0]!}`))].sort();
  if (results.length > MAX_DIRECTORIES)
    throw badRequest(`More than ${MAX_DIRECTORIES} directories are in ${root || '/'}: name a deeper root_path.`);
  return { results };
}

/**
 * Asks a provider with the named token, else with the oldest usable one; undefined if there is none. An error that the caller can correct
 * is 400 and names the token, or `field` if the provider answers 404; every other error is 502.
 */
async function askingProvider<T>(
  asking: Asking,
  ask: (http: HttpClient, access: ProviderAccess, token: GitTokenRow) => Promise<T>,
  field = 'gitTokenId',
): Promise<T | undefined> {
  const { context } = asking;
  const token = await findToken(asking);
  if (!token) return undefined;
  const http = createHttpClient({ allowedPrivateAddresses: context.settings.allowedPrivateAddresses });
  const signal = anySignal([context.signal, AbortSignal.timeout(TIMEOUT_MS)]);
  try {
    return await ask(http, await accessOf(context, token, signal), token);
  } catch (error) {
    throw error instanceof ProviderError ? toAppError(error, error.status === 404 ? field : 'gitTokenId') : error;
  }
}

async function findToken({ context, organizationIds, provider, gitTokenId }: Asking) {
  if (gitTokenId === undefined)
    return listUsableGitTokens(context.db, organizationIds, provider).limit(1).executeTakeFirst();
  const token = await findGitTokenById(context.db, organizationIds, gitTokenId);
  if (!token) throw invalidField('gitTokenId', 'names no git token of this organization');
  if (token.type !== provider) throw invalidField('gitTokenId', `is a token of ${token.type}: name one of ${provider}`);
  return token;
}

/** Patterns of repository names. GitLab's groups nest; elsewhere exactly one owner precedes the repository. */
const NAMES: Record<Provider, RegExp> = {
  BITBUCKET: /^[^/]+\/[^/]+$/,
  GITHUB: /^[^/]+\/[^/]+$/,
  GITLAB: /^[^/]+(\/[^/]+)+$/,
};

function checkName(provider: Provider, name: string | undefined): string {
  if (name === undefined || name === '')
    throw invalidField('name', 'is required: the repository with its owner (owner/name)');
  const parts = name.split('/');
  if (!NAMES[provider].test(name) || parts.some((part) => part === '.' || part === '..') || /[\p{Cc}\s]/u.test(name))
    throw invalidField(
      'name',
      'must be the repository with its owner (owner/name), as the list of repositories names it',
    );
  return name;
}
