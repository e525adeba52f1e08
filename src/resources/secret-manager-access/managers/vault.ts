import type { Shape } from '#kernel/parsing/formats.ts';
import type { OpenAccess } from '#resources/cluster/index.ts';
import {
  ask,
  listOf,
  MAX_NAMES,
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

/** Parts of the answers: a secret's data is kept as JSON. */
const SHAPE: Shape = {
  errors: [true],
  auth: { client_token: 'text' },
  data: { keys: [true], data: 'json' },
};
/** Folders that are looked into: each is a request. */
const MAX_FOLDERS = 200;

/**
 * HashiCorp Vault, OpenBao and what else speaks like them: the KV engine of version 2. A secret there is several values under keys, and
 * is read as a JSON object of them; `path#key` is one of them.
 */
export function openVault(access: OpenAccess, parts: ManagerParts): SecretManager {
  const { url, mount = 'secret' } = access.endpoint;
  let token: Promise<string> | undefined;
  const get = async (path: string): Promise<ManagerAnswer> => {
    token ??= tokenOf(access, parts);
    const headers = { ...headersOf(access), 'x-vault-token': await token };
    const answer = await ask(parts, addressOf(access, `${encodedPath(mount)}/${path}`), { headers }, SHAPE);
    if (answer.status === 403) throw notAllowed('this, or does not accept its token');
    if (answer.status !== 200 && answer.status !== 404) throw new SecretManagerError(saying(answer.status));
    // Only where there is no engine at all is there something to say.
    if (answer.status === 404 && listOf(answer.body?.errors).length > 0)
      throw new SecretManagerError(`it has no KV engine of version 2 at ${mount}`);
    if (answer.status === 200 && typeof answer.body?.data !== 'object') throw notUnderstood();
    return answer;
  };
  return {
    label: `Vault at ${new URL(url!).host}`,
    list: (prefix) =>
      listNames(prefix, async (folder) => {
        const { status, body } = await get(`metadata/${encodedPath(folder)}?list=true`);
        return status === 404 ? [] : listOf(body?.data?.keys).map(textOf);
      }),
    read: async (name) => {
      const { status, body } = await get(`data/${encodedPath(name)}`);
      // A deleted version is 404 with its metadata.
      if (status === 404) throw notThere();
      const data: unknown = body?.data?.data;
      if (typeof data !== 'string' || !/^[{[]/.test(data)) throw notUnderstood();
      return data;
    },
  };
}

/** Goes through the folders in which names with the prefix can be. */
async function listNames(prefix: string, keysIn: (folder: string) => Promise<string[]>): Promise<string[]> {
  const found: string[] = [];
  const folders = [prefix.slice(0, prefix.lastIndexOf('/') + 1)];
  for (let looked = 0; folders.length > 0 && looked < MAX_FOLDERS && found.length < MAX_NAMES; looked++) {
    const folder = folders.shift()!;
    const names = (await keysIn(folder)).map((key) => folder + key).sort();
    const wanted = names.filter((name) => name.startsWith(prefix) || (name.endsWith('/') && prefix.startsWith(name)));
    folders.push(...wanted.filter((name) => name.endsWith('/')));
    found.push(...wanted.filter((name) => !name.endsWith('/')));
  }
  return found.slice(0, MAX_NAMES).sort();
}

async function tokenOf(access: OpenAccess, parts: ManagerParts): Promise<string> {
  const { authentication } = access;
  if (authentication.mode === 'VAULT_TOKEN') return textOf(authentication.token);
  const path = `auth/${encodedPath(authentication.mount ?? 'approle')}/login`;
  const request = {
    method: 'POST' as const,
    headers: { ...headersOf(access), 'content-type': 'application/json' },
    body: JSON.stringify({ role_id: authentication.role_id, secret_id: authentication.secret_id }),
  };
  const { status, body } = await ask(parts, addressOf(access, path), request, SHAPE);
  if (status === 400 || status === 403) throw notLetIn();
  if (status !== 200) throw new SecretManagerError(saying(status));
  return textOf(body?.auth?.client_token);
}

const saying = (status: number): string => (status === 503 ? 'it is sealed' : `it answered ${status}`);

const addressOf = ({ endpoint }: OpenAccess, path: string): string => `${endpoint.url!.replace(/\/+$/, '')}/v1/${path}`;

const headersOf = ({ endpoint }: OpenAccess): Record<string, string> => ({
  'x-vault-request': 'true',
  ...(endpoint.namespace === undefined ? {} : { 'x-vault-namespace': endpoint.namespace }),
});

/** A path of a secret, which must lead to nothing else. */
function encodedPath(path: string): string {
  const parts = path.split('/');
  if (parts.some((part) => part === '.' || part === '..')) throw notThere();
  return parts.map(encodeURIComponent).join('/');
}
