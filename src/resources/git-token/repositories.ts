import type { Shape } from '#kernel/parsing/formats.ts';
import type { HttpClient } from '#platform/http-client/index.ts';
import {
  askProvider,
  ProviderError,
  type Provider,
  type ProviderAccess,
  type ProviderAnswer,
} from '#resources/git-token/provider.ts';

/** Repository as its provider describes it. */
export interface ProvidedRepository {
  id: string;
  /** Name with its owner: `acme/shop`. */
  name: string;
  /** Address by which it is cloned. */
  url: string;
  default_branch?: string;
  is_private: boolean;
}

/** Largest number of pages, of a hundred repositories each, that are followed: a list to pick from needs no more. */
const MAX_PAGES = 20;

interface Dialect {
  /** Paths of the lists whose pages together are all repositories that the token may see. */
  lists(ask: (path: string) => Promise<unknown[]>, workspace: string | null): Promise<string[]>;
  /** Parts of an entry of any list that are read. */
  entry: Shape;
  repository(item: any): ProvidedRepository;
  branches(name: string): string;
  /** Shape of a page with entries of a shape. */
  page(entry: Shape): Shape;
  /** Entries of a page. */
  items(body: any): unknown;
  /** Address of the next page. */
  next(answer: ProviderAnswer): string | undefined;
}

const segment = encodeURIComponent;
const segments = (name: string): string => name.split('/').map(segment).join('/');

/** GitHub and GitLab name the next page in a header (RFC 8288). */
const linkedNext = ({ headers }: ProviderAnswer): string | undefined =>
  /<([^>]*)>\s*;[^,]*\brel="?next\b/.exec(String(headers.link ?? ''))?.[1];

const DIALECTS: Record<Provider, Dialect> = {
  GITHUB: {
    entry: { id: true, full_name: true, clone_url: true, default_branch: true, private: true, name: true },
    page: (entry) => [entry],
    lists: () => Promise.resolve(['/user/repos?per_page=100&sort=full_name']),
    repository: (item) => ({
      id: textOf(item.id),
      name: textOf(item.full_name),
      url: textOf(item.clone_url),
      ...branchOf(item.default_branch),
      is_private: item.private === true,
    }),
    branches: (name) => `/repos/${segments(name)}/branches?per_page=100`,
    items: (body) => body,
    next: linkedNext,
  },
  GITLAB: {
    entry: {
      id: true,
      path_with_namespace: true,
      http_url_to_repo: true,
      default_branch: true,
      visibility: true,
      name: true,
    },
    page: (entry) => [entry],
    lists: () => Promise.resolve(['/projects?membership=true&per_page=100&order_by=id&sort=asc&pagination=keyset']),
    repository: (item) => ({
      id: textOf(item.id),
      name: textOf(item.path_with_namespace),
      url: textOf(item.http_url_to_repo),
      ...branchOf(item.default_branch),
      is_private: item.visibility !== 'public',
    }),
    branches: (name) => `/projects/${segment(name)}/repository/branches?per_page=100`,
    items: (body) => body,
    next: linkedNext,
  },
  BITBUCKET: {
    entry: {
      uuid: true,
      full_name: true,
      is_private: true,
      name: true,
      slug: true,
      links: {
        clone: [
          {
            name: true,
            href: true,
          },
        ],
      },
      mainbranch: { name: true },
      workspace: { slug: true },
    },
    page: (entry) => ({ values: [entry], next: true }),
    // Lists over all workspaces are gone since April 2026: one is asked after the other.
    lists: async (ask, workspace) => {
      const found = workspace ? [workspace] : (await ask('/user/workspaces?pagelen=100')).map(workspaceOf);
      return found.map((slug) => `/repositories/${segment(slug)}?role=member&pagelen=100&sort=full_name`);
    },
    repository: (item) => ({
      id: textOf(item.uuid),
      name: textOf(item.full_name),
      url: withoutUser(textOf(item.links.clone.find((link: any) => link.name === 'https').href)),
      ...branchOf(item.mainbranch?.name),
      is_private: item.is_private === true,
    }),
    branches: (name) => `/repositories/${segments(name)}/refs/branches?pagelen=100`,
    items: (body) => body?.values,
    next: ({ body }) => (typeof body?.next === 'string' ? body.next : undefined),
  },
};

/** Lists the repositories that a token may see, the first 2,000 of a list. Throws ProviderError. */
export async function listProvidedRepositories(
  http: HttpClient,
  access: ProviderAccess,
  workspace: string | null,
): Promise<ProvidedRepository[]> {
  const dialect = DIALECTS[access.provider];
  const ask = (path: string) => listPages(http, access, path, 'repositories');
  const found: unknown[] = [];
  for (const path of await reading(access, 'workspaces', () => dialect.lists(ask, workspace)))
    found.push(...(await ask(path)));
  return reading(access, 'repositories', () => found.map((item) => dialect.repository(item)));
}

/** Lists the names of a repository's branches, the first 2,000. Throws ProviderError. */
export async function listProvidedBranches(
  http: HttpClient,
  access: ProviderAccess,
  repository: string,
): Promise<{ name: string }[]> {
  const path = DIALECTS[access.provider].branches(repository);
  const found = await listPages(http, access, path, `the repository ${repository}`);
  return reading(access, 'branches', () => found.map((item) => ({ name: textOf((item as any).name) })));
}

async function listPages(http: HttpClient, access: ProviderAccess, first: string, what: string): Promise<unknown[]> {
  const dialect = DIALECTS[access.provider];
  const found: unknown[] = [];
  let path: string | undefined = first;
  for (let page = 0; path !== undefined && page < MAX_PAGES; page++) {
    const answer = await askProvider(http, access, path, dialect.page(dialect.entry));
    refuse(access, answer.status, what);
    const items = dialect.items(answer.body);
    if (!Array.isArray(items)) throw misread(access, what);
    found.push(...items);
    path = withinApi(access, dialect.next(answer));
  }
  return found;
}

/** Returns the path of the next page. Servers behind a proxy name themselves by wrong addresses: only path and query count. */
function withinApi({ api }: ProviderAccess, next: string | undefined): string | undefined {
  if (next === undefined || !URL.canParse(next, api)) return undefined;
  const [url, root] = [new URL(next, api), new URL(api).pathname.replace(/\/$/, '')];
  return (url.pathname.startsWith(`${root}/`) ? url.pathname.slice(root.length) : url.pathname) + url.search;
}

function refuse({ api }: ProviderAccess, status: number, what: string): void {
  if (status < 400) return;
  if (status === 401)
    throw new ProviderError('refused', `${api} does not accept the git token: it may have expired or been revoked.`);
  if (status === 403)
    throw new ProviderError('refused', `${api} does not let the git token read ${what}: give it that permission.`);
  if (status === 404)
    throw new ProviderError('refused', `${api} has no ${what.replace(/^the /, '')} that the git token may read.`, {
      status,
    });
  throw new ProviderError('unreachable', `${api} answered ${status}.`);
}

async function reading<T>(access: ProviderAccess, what: string, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof TypeError) throw misread(access, what, error);
    throw error;
  }
}

const misread = ({ api }: ProviderAccess, what: string, cause?: unknown) =>
  new ProviderError('unreachable', `${api} answered something else than a list of ${what}.`, { cause });

function textOf(value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  if (typeof value === 'number') return String(value);
  throw new TypeError('A text is missing.');
}

/** Returns the default branch, which an empty repository does not have. */
const branchOf = (name: unknown): { default_branch?: string } =>
  typeof name === 'string' && name !== '' ? { default_branch: name } : {};

const workspaceOf = (item: any): string => textOf((item.workspace ?? item).slug);

/** Removes the user name that Bitbucket writes into the address; addresses here carry no user. */
function withoutUser(address: string): string {
  if (!URL.canParse(address)) return address;
  const url = new URL(address);
  url.username = '';
  url.password = '';
  return url.href;
}
