import type { Platform } from '#platform/context.ts';
import { isProtected } from '#platform/http-client/index.ts';
import { isServerOf } from '#resources/git-token/server.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** User name and password for git over HTTP. */
export interface TokenCredentials {
  username: string;
  password: string;
}

/** User names that go with a token as the password, by provider. */
const USERNAMES: Record<string, string> = { GITHUB: 'x-access-token', GITLAB: 'oauth2', BITBUCKET: 'x-token-auth' };

/**
 * Opens a git token of the organization. `addressOf` tells where git will send it; null where git reads without it.
 * Throws RuntimeError `refused` where the token is gone or not meant for that address.
 */
export async function openTokenCredentials(
  platform: Platform,
  organizationId: string,
  id: string,
  addressOf: () => string | null,
): Promise<TokenCredentials> {
  const row = await platform.db
    .selectFrom('git_token')
    .select(['token', 'type', 'workspace', 'git_api_url'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst();
  if (!row) throw new RuntimeError('refused', 'The git token of the service is gone: give the service another one.');
  const address = addressOf();
  if (address !== null) refuseOtherHost(address, row.git_api_url, platform.settings.allowedPrivateAddresses);
  return {
    username: USERNAMES[row.type] ?? 'git',
    password: await platform.vault.open(platform.db, organizationId, `git_token/${id}/token`, row.token),
  };
}

/**
 * Refuses a token for any address but its own provider's, and over http where others can read it. Whoever may edit a service
 * could else read the token by naming a repository on a server of theirs.
 */
function refuseOtherHost(
  address: string,
  apiUrl: string,
  allowed: Platform['settings']['allowedPrivateAddresses'],
): void {
  const [target, api] = [new URL(address), new URL(apiUrl)];
  if (!isServerOf(api, target))
    throw new RuntimeError(
      'refused',
      `The git token is for ${api.origin}, the repository is at ${target.origin}: give the service a token of that place.`,
    );
  if (!isProtected(address, allowed))
    throw new RuntimeError(
      'refused',
      `The git token is not sent to ${target.origin} over http, where others can read it: use https, or an address in QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES.`,
    );
}
