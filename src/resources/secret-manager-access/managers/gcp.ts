import type { Shape } from '#kernel/parsing/formats.ts';
import type { OpenAccess } from '#resources/cluster/index.ts';
import {
  allNames,
  ask,
  decoded,
  listOf,
  notAllowed,
  notLetIn,
  notThere,
  notUnderstood,
  SecretManagerError,
  textOf,
  type ManagerAnswer,
  type ManagerParts,
  type SecretManager,
} from '#resources/secret-manager-access/managers/manager.ts';

/** Parts of the answers with secrets and tokens. */
const SHAPE: Shape = {
  access_token: 'text',
  payload: { data: 'text' },
  secrets: [{ name: true }],
  nextPageToken: 'text',
};
const TOKEN_URL = 'https://oauth2.googleapis.com/token';
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
/** Pattern of Google for names of secrets. */
const NAME = /^[A-Za-z0-9_-]{1,255}$/;

/** Google Cloud Secret Manager (REST, v1), by the key of a service account. */
export function openGcpSecretManager(access: OpenAccess, parts: ManagerParts): SecretManager {
  const project = encodeURIComponent(access.endpoint.project_id!);
  const root = `${parts.settings.gcpSecretsUrl}/v1/projects/${project}/secrets`;
  let token: Promise<string> | undefined;
  const get = async (path: string): Promise<any> => {
    token ??= tokenOf(access, parts);
    const headers = { authorization: `Bearer ${await token}` };
    const answer = await ask(parts, `${root}${path}`, { headers }, SHAPE);
    if (answer.status !== 200) throw failureOf(answer);
    if (typeof answer.body !== 'object' || answer.body === null) throw notUnderstood();
    return answer.body;
  };
  return {
    label: `Google Cloud Secret Manager of ${access.endpoint.project_id}`,
    list: (prefix) =>
      allNames<string>(prefix, async (next) => {
        const query = new URLSearchParams({ pageSize: '250' });
        if (prefix !== '') query.set('filter', `name:${prefix}`);
        if (next) query.set('pageToken', next);
        const body = await get(`?${query}`);
        const names = listOf(body.secrets).map((one) => textOf(one.name).split('/').at(-1)!);
        return { names, next: body.nextPageToken };
      }),
    read: async (name) => {
      if (!NAME.test(name)) throw notThere();
      return decoded((await get(`/${name}/versions/latest:access`)).payload?.data);
    },
  };
}

interface ServiceAccount {
  client_email: string;
  private_key: string;
  token_uri?: string;
}

/** Exchanges an assertion that the service account's key signs for a token (RFC 7523). */
async function tokenOf({ authentication }: OpenAccess, parts: ManagerParts): Promise<string> {
  if (!authentication.json_credentials)
    throw new SecretManagerError('the access has no credentials of its own: give it the key of a service account');
  const account = JSON.parse(authentication.json_credentials) as ServiceAccount;
  const url = account.token_uri ?? TOKEN_URL;
  const assertion = await assertionOf(account, url, parts);
  const request = {
    method: 'POST' as const,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ grant_type: GRANT, assertion }).toString(),
  };
  const answer = await ask(parts, url, request, SHAPE);
  if (answer.status === 400 || answer.status === 401) throw notLetIn();
  if (answer.status !== 200) throw new SecretManagerError(`it answered ${answer.status} when asked for a token`);
  return textOf(answer.body?.access_token);
}

async function assertionOf(account: ServiceAccount, audience: string, { clock }: ManagerParts): Promise<string> {
  const now = Math.floor(clock.now().getTime() / 1000);
  // Loaded when it is needed: it takes some megabytes.
  const { importPKCS8, SignJWT } = await import('jose');
  const claims = new SignJWT({ scope: SCOPE })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setIssuer(account.client_email)
    .setAudience(audience)
    .setIssuedAt(now)
    .setExpirationTime(now + 3600);
  try {
    return await claims.sign(await importPKCS8(account.private_key, 'RS256'));
  } catch (error) {
    throw new SecretManagerError(
      'the private key of its service account is none that can be read (PKCS #8, RSA)',
      error,
    );
  }
}

function failureOf({ status }: ManagerAnswer): SecretManagerError {
  if (status === 404) return notThere();
  if (status === 401) return notLetIn();
  if (status === 403) return notAllowed();
  return new SecretManagerError(`it answered ${status}`);
}
