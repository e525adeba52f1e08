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
  type ManagerParts,
  type SecretManager,
} from '#resources/secret-manager-access/managers/manager.ts';

const PAGE_SIZE = 100;
const SHAPE: Shape = { data: 'text', secrets: [{ name: true, path: true }] };

/** Scaleway Secret Manager (v1beta1). A secret's name has its path before it: `shop/database` is `database` in `/shop`. */
export function openScalewaySecretManager(
  { endpoint, authentication }: OpenAccess,
  parts: ManagerParts,
): SecretManager {
  const region = encodeURIComponent(endpoint.region!);
  const root = `${parts.settings.scalewayUrl}/secret-manager/v1beta1/regions/${region}`;
  const get = async (path: string, query: Record<string, string>): Promise<any> => {
    const asked = new URLSearchParams({ project_id: endpoint.project_id!, ...query });
    const headers = { 'x-auth-token': textOf(authentication.secret_key) };
    const { status, body } = await ask(parts, `${root}${path}?${asked}`, { headers }, SHAPE);
    if (status === 401) throw notLetIn();
    if (status === 403) throw notAllowed();
    if (status === 404) throw notThere();
    if (status !== 200) throw new SecretManagerError(`it answered ${status}`);
    if (typeof body !== 'object' || body === null) throw notUnderstood();
    return body;
  };
  return {
    label: `Scaleway Secret Manager in ${endpoint.region}`,
    list: (prefix) =>
      allNames<number>(prefix, async (page = 1) => {
        const body = await get('/secrets', { page: String(page), page_size: String(PAGE_SIZE), order_by: 'name_asc' });
        const secrets = listOf(body.secrets);
        return { names: secrets.map(nameOf), next: secrets.length < PAGE_SIZE ? undefined : page + 1 };
      }),
    read: async (name) => {
      const parts = name.split('/').filter((part) => part !== '');
      const query = { secret_path: `/${parts.slice(0, -1).join('/')}`, secret_name: parts.at(-1) ?? '' };
      return decoded((await get('/secrets-by-path/versions/latest/access', query)).data);
    },
  };
}

const nameOf = ({ name, path }: any): string => `${textOf(path ?? '/')}/${textOf(name)}`.replace(/^\/+/, '');
