import type { Platform } from '#platform/context.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { Git, type GitCredentials, type GitSource } from '#runtimes/tools/git/index.ts';

export interface SourceAddress {
  organizationId: string;
  url: string;
  branch: string;
  gitTokenId: string | null;
  signal: AbortSignal;
}

/** Git for the engine and for the endpoints that read repositories: with the organization's tokens, and the settings' policy. */
export function createSources(platform: Platform) {
  const { settings } = platform;
  const http = createHttpClient({ allowedPrivateAddresses: settings.allowedPrivateAddresses });
  const git = new Git({ localRoots: settings.localGitRoots, addressPolicy: (host) => http.addressPolicy(host) });
  const sourceOf = async (address: SourceAddress): Promise<GitSource> => ({
    url: address.url,
    branch: address.branch,
    credentials: address.gitTokenId
      ? await findCredentials(platform, address.organizationId, address.gitTokenId)
      : null,
    signal: address.signal,
  });
  return {
    resolve: async (request: SourceAddress & { commitId: string | null }) =>
      git.resolve(await sourceOf(request), request.commitId),
    checkout: async (request: SourceAddress & { commit: string; directory: string; log(line: string): void }) =>
      git.checkout(await sourceOf(request), request.commit, request.directory, request.log),
    listCommits: async (request: SourceAddress & { limit: number }) =>
      git.listCommits(await sourceOf(request), request.limit),
    readFile: async (request: SourceAddress & { path: string }) => git.readFile(await sourceOf(request), request.path),
    listFiles: async (request: SourceAddress) => git.listFiles(await sourceOf(request)),
  };
}

/** User names that go with a token as the password, by provider. */
const USERNAMES: Record<string, string> = { GITHUB: 'x-access-token', GITLAB: 'oauth2', BITBUCKET: 'x-token-auth' };

async function findCredentials(platform: Platform, organizationId: string, id: string): Promise<GitCredentials> {
  const row = await platform.db
    .selectFrom('git_token')
    .select(['token', 'type', 'workspace'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst();
  if (!row) throw new Error('The git token of the service is gone: give the service another one.');
  return {
    username: USERNAMES[row.type] ?? 'git',
    password: await platform.vault.open(platform.db, organizationId, `git_token/${id}/token`, row.token),
  };
}
