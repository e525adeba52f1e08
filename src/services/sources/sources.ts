import path from 'node:path';
import type { Platform } from '#platform/context.ts';
import { createHttpClient, isProtected } from '#platform/http-client/index.ts';
import { diskLimits } from '#app/disk-limits.ts';
import type { Settings } from '#platform/settings/index.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { Git, type GitCredentials, type GitSource } from '#runtimes/tools/git/index.ts';
import { locate, overHttps } from '#runtimes/tools/git/location.ts';

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
  const git = new Git({
    localRoots: settings.localGitRoots,
    addressPolicy: (host) => http.addressPolicy(host),
    request: (url, request) => http.request(url, request),
    knownHostsFile: path.join(settings.dataDir, 'known-hosts'),
    disk: diskLimits(settings, settings.checkoutLimitMb),
  });
  const sourceOf = async (address: SourceAddress): Promise<GitSource> => ({
    url: address.url,
    branch: address.branch,
    credentials: address.gitTokenId
      ? await findCredentials(platform, address.organizationId, address.gitTokenId, address.url)
      : null,
    signal: address.signal,
  });
  return {
    defaultBranch: async (request: SourceAddress) => git.defaultBranch(await sourceOf(request)),
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

async function findCredentials(
  platform: Platform,
  organizationId: string,
  id: string,
  repository: string,
): Promise<GitCredentials> {
  const row = await platform.db
    .selectFrom('git_token')
    .select(['token', 'type', 'workspace', 'git_api_url'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst();
  if (!row) throw new Error('The git token of the service is gone: give the service another one.');
  refuseOtherHost(repository, row.git_api_url, platform.settings);
  return {
    username: USERNAMES[row.type] ?? 'git',
    password: await platform.vault.open(platform.db, organizationId, `git_token/${id}/token`, row.token),
  };
}

/**
 * A token is sent to its own provider only, and over TLS where that has it: whoever may edit a service could else read it by naming
 * a place of theirs. What counts is where git will connect to (`git@host:path` is https with a token), not how the URL is written.
 */
function refuseOtherHost(
  repository: string,
  apiUrl: string,
  { localGitRoots, allowedPrivateAddresses }: Pick<Settings, 'localGitRoots' | 'allowedPrivateAddresses'>,
): void {
  const location = locate(repository, localGitRoots);
  const web = location.kind === 'ssh' ? overHttps(location) : location.kind === 'local' ? null : location.url;
  if (web === null) return; // Read without the token.
  const [target, api] = [new URL(web), new URL(apiUrl)];
  const isHost = target.hostname === api.hostname || `api.${target.hostname}` === api.hostname;
  if (!isHost || target.port !== api.port || target.protocol !== api.protocol)
    throw new RuntimeError(
      'refused',
      `The git token is for ${api.origin}, the repository is at ${target.origin}: give the service a token of that place.`,
    );
  if (!isProtected(web, allowedPrivateAddresses))
    throw new RuntimeError(
      'refused',
      `The git token is not sent to ${target.origin} over http, where others can read it: use https, or an address in QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES.`,
    );
}
