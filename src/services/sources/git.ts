import { AppError, invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { BLANK_IS_ABSENT } from '#platform/http/blank.ts';
import { DateTime, named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';

export const GitProvider = OneOf(['BITBUCKET', 'GITHUB', 'GITLAB']);

export const CommitId = Type.String({
  ...BLANK_IS_ABSENT,
  pattern: '^[0-9a-f]{7,40}$',
  description: 'Commit to deploy instead of the head of the branch, for this deployment only.',
});

export const GitRepositoryRequest = named(
  'GitRepositoryRequest',
  Type.Object({
    url: Type.String({
      minLength: 1,
      maxLength: 2000,
      description:
        'Begins with https://, http:// or ssh://, or is git@host:owner/name.git, or a local path under a folder that the operator allows. Carries no credentials.',
    }),
    branch: Type.Optional(
      Type.String({
        ...BLANK_IS_ABSENT,
        minLength: 1,
        maxLength: 255,
        description: 'Without it, the one that HEAD of the repository names, else `main`.',
      }),
    ),
    root_path: Type.Optional(
      Type.String({
        maxLength: 1000,
        description: 'Folder within the repository, without `..`. Without it, the root.',
      }),
    ),
    git_token_id: Type.Optional(Nullable(Uuid)),
    provider: Type.Optional(GitProvider),
  }),
);
export type GitRepositoryInput = Static<typeof GitRepositoryRequest>;

/** docs/contributing/rules.md, *Git repository* */
export const GitRepository = named(
  'GitRepository',
  Type.Object({
    has_access: Type.Boolean(),
    provider: GitProvider,
    owner: Type.String(),
    url: Type.String(),
    name: Type.String(),
    branch: Type.String(),
    root_path: Type.String(),
    deployed_commit_id: Type.Optional(Type.String()),
    deployed_commit_date: Type.Optional(DateTime),
    deployed_commit_contributor: Type.Optional(Type.String()),
    deployed_commit_tag: Type.Optional(Type.String()),
    git_token_id: Nullable(Uuid),
    git_token_name: Nullable(Type.String()),
  }),
);

/** Source as stored in a spec. */
export interface GitSource {
  provider: 'BITBUCKET' | 'GITHUB' | 'GITLAB';
  owner: string;
  name: string;
  url: string;
  branch: string;
  root_path: string;
  git_token_id: string | null;
}

/** Commit that a deployment resolved. */
export interface ResolvedCommit {
  id: string;
  date: string;
  author: string;
  message: string;
  tag: string;
}

/** Returns the path of a field of a source; `field` is empty if the fields stand at the top of the body. */
const within = (field: string, part: string): string => (field === '' ? part : `${field}.${part}`);

/** Reads a source: the provider is derived from the host, missing owner and name from the path (docs/contributing/rules.md 9). */
export async function toGitSource(
  context: Context,
  place: { organizationId: string },
  input: GitRepositoryInput,
  present: GitSource | null,
  field = 'git_repository',
): Promise<GitSource> {
  const location = locate(input.url, field);
  const tokenId = input.git_token_id === undefined ? (present?.git_token_id ?? null) : input.git_token_id;
  if (tokenId !== null) await refuseForeignToken(context, place, tokenId, within(field, 'git_token_id'));
  return {
    provider: input.provider ?? location.provider,
    owner: location.owner,
    name: location.name,
    url: input.url,
    branch: input.branch ?? (present?.url === input.url ? present.branch : 'main'),
    root_path: checkRelative(input.root_path ?? '/', within(field, 'root_path')),
    git_token_id: tokenId,
  };
}

/** Normalizes a path within a repository. A leading `/` means the root of the repository. Throws 400 if the path leaves it. */
export function checkRelative(path: string, field: string): string {
  if (path.split('/').includes('..') || path.includes('\0') || path.startsWith('-'))
    throw invalidField(field, 'must stay within the repository: no "..", no leading "-"');
  return path;
}

const SCP_FORM = /^(?<user>[\w.-]+)@(?<host>[\w.-]+):(?<path>(?!\/\/).+)$/;

/** Returns provider, owner and name of a git URL; undefined if it is invalid or contains credentials. */
export function locateRepository(url: string): Pick<GitSource, 'provider' | 'owner' | 'name'> | undefined {
  try {
    return locate(url, 'url');
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

function locate(url: string, field: string): { provider: GitSource['provider']; owner: string; name: string } {
  const scp = SCP_FORM.exec(url);
  const local = url.startsWith('/');
  if (!scp && !local && !URL.canParse(url))
    throw invalidField(within(field, 'url'), 'must be a git URL: https://host/owner/name.git');
  const parsed = scp
    ? new URL(`ssh://${scp.groups!.host}/${scp.groups!.path}`)
    : local
      ? new URL(`file://${url}`)
      : new URL(url);
  if (!['https:', 'http:', 'ssh:', 'file:'].includes(parsed.protocol))
    throw invalidField(
      within(field, 'url'),
      'must begin with https://, http:// or ssh://, or be a local path under a configured root',
    );
  if (parsed.password || (parsed.username && parsed.protocol.startsWith('http')))
    throw invalidField(
      within(field, 'url'),
      'must not carry credentials: make a git token and name it in git_token_id',
    );
  const parts = parsed.pathname.split('/').filter((part) => part !== '');
  const name = (parts.at(-1) ?? '').replace(/\.git$/, '');
  if (!name) throw invalidField(within(field, 'url'), 'names no repository');
  return { provider: providerOf(parsed.hostname), owner: parts.slice(0, -1).join('/'), name };
}

function providerOf(host: string): GitSource['provider'] {
  if (/(^|\.)github\./.test(host)) return 'GITHUB';
  if (/(^|\.)bitbucket\./.test(host)) return 'BITBUCKET';
  return 'GITLAB';
}

async function refuseForeignToken(
  context: Context,
  place: { organizationId: string },
  id: string,
  field: string,
): Promise<void> {
  const row = await context.db
    .selectFrom('git_token')
    .select('id')
    .where('organization_id', '=', place.organizationId)
    .where('id', '=', id)
    // Locked until the commit, so that the token is not deleted before the service refers to it.
    .forKeyShare()
    .executeTakeFirst();
  if (!row) throw invalidField(field, 'names no git token of this organization');
}

/** Makes the answer of a source, with the commit that was deployed last. */
export const toGitView = (source: GitSource, commit: ResolvedCommit | undefined, tokenName: string | null) => ({
  has_access: true,
  ...source,
  ...(commit
    ? {
        deployed_commit_id: commit.id,
        deployed_commit_date: commit.date,
        deployed_commit_contributor: commit.author,
        deployed_commit_tag: commit.tag,
      }
    : {}),
  git_token_name: tokenName,
});
