import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach } from 'vitest';

/** Repository of the pretended providers. */
interface PretendedRepository {
  id: number;
  owner: string;
  name: string;
  isPrivate?: boolean;
  branches: string[];
}

interface PretendedAnswer {
  status: number;
  headers?: Record<string, string>;
  body?: unknown;
}

/** APIs of GitHub, GitLab and Bitbucket on one local server, each under the path that its own servers have. */
export interface PretendedProvider {
  origin: string;
  repositories: PretendedRepository[];
  /** Token that is accepted. */
  token: string;
  /** Records per page, whatever the request asks for. */
  pageSize: number;
  /** Received requests, in order. */
  requests: { path: string; headers: IncomingHttpHeaders }[];
  /** Replaces every answer while it is set. */
  instead: ((path: string) => PretendedAnswer | undefined) | undefined;
  /** Origin that the server writes into addresses of next pages; undefined for its own. */
  namesItself: string | undefined;
}

/** Starts a server that answers as the providers document it, with the data of a test. */
export function usePretendedProvider(): PretendedProvider {
  const provider = { namesItself: undefined } as PretendedProvider;
  const server = createServer((request, response) => {
    const path = request.url!;
    provider.requests.push({ path, headers: request.headers });
    const { status, headers, body } = provider.instead?.(path) ?? answerTo(provider, path, request.headers);
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body ?? { message: 'no' }));
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    provider.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  beforeEach(() =>
    Object.assign(provider, {
      repositories: [],
      token: 'good',
      pageSize: 2,
      requests: [],
      instead: undefined,
      namesItself: undefined,
    }),
  );
  afterAll(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return provider;
}

function answerTo(provider: PretendedProvider, path: string, headers: IncomingHttpHeaders): PretendedAnswer {
  const given = headers['private-token'] ?? /^Bearer (.*)$/.exec(headers.authorization ?? '')?.[1];
  if (given !== provider.token) return { status: 401 };
  const url = new URL(path, provider.origin);
  if (url.pathname.startsWith('/api/v3/')) return linked(provider, url, github(provider, url.pathname.slice(7)));
  if (url.pathname.startsWith('/api/v4/')) return linked(provider, url, gitlab(provider, url.pathname.slice(7)));
  return enveloped(provider, url, bitbucket(provider, url.pathname.slice(4)));
}

const fullName = ({ owner, name }: PretendedRepository): string => `${owner}/${name}`;
const branchesOf = (provider: PretendedProvider, name: string): unknown[] | undefined =>
  provider.repositories
    .find((one) => fullName(one).toLowerCase() === name.toLowerCase())
    ?.branches.map((branch) => ({ name: branch, commit: { sha: 'a'.repeat(40) } }));

function github(provider: PretendedProvider, path: string): unknown[] | undefined {
  if (path === '/user/repos')
    return provider.repositories.map((one) => ({
      id: one.id,
      node_id: `R_${one.id}`,
      name: one.name,
      full_name: fullName(one),
      private: one.isPrivate ?? false,
      owner: { login: one.owner, type: 'Organization' },
      html_url: `https://github.com/${fullName(one)}`,
      clone_url: `https://github.com/${fullName(one)}.git`,
      default_branch: one.branches[0] ?? null,
    }));
  return branchesOf(provider, decodeURIComponent(/^\/repos\/(.+)\/branches$/.exec(path)?.[1] ?? ''));
}

function gitlab(provider: PretendedProvider, path: string): unknown[] | undefined {
  if (path === '/projects')
    return provider.repositories.map((one) => ({
      id: one.id,
      path: one.name,
      path_with_namespace: fullName(one),
      visibility: one.isPrivate ? 'private' : 'public',
      http_url_to_repo: `https://gitlab.com/${fullName(one)}.git`,
      default_branch: one.branches[0] ?? null,
    }));
  const encoded = /^\/projects\/([^/]+)\/repository\/branches$/.exec(path)?.[1];
  return encoded === undefined ? undefined : branchesOf(provider, decodeURIComponent(encoded));
}

function bitbucket(provider: PretendedProvider, path: string): unknown[] | undefined {
  if (path === '/user/workspaces')
    return [...new Set(provider.repositories.map((one) => one.owner))].map((slug) => ({
      type: 'workspace_access',
      administrator: false,
      workspace: { type: 'workspace_base', slug },
    }));
  const workspace = /^\/repositories\/([^/]+)$/.exec(path)?.[1];
  if (workspace === undefined)
    return branchesOf(provider, decodeURIComponent(/^\/repositories\/(.+)\/refs\/branches$/.exec(path)?.[1] ?? ''));
  const mine = provider.repositories.filter((one) => one.owner === decodeURIComponent(workspace));
  return mine.map((one) => ({
    uuid: `{${one.id}}`,
    full_name: fullName(one),
    is_private: one.isPrivate ?? false,
    mainbranch: one.branches[0] ? { type: 'branch', name: one.branches[0] } : null,
    links: {
      clone: [
        { name: 'https', href: `https://somebody@bitbucket.org/${fullName(one)}.git` },
        { name: 'ssh', href: `git@bitbucket.org:${fullName(one)}.git` },
      ],
    },
  }));
}

/** Returns a page, and the address of the next one, if any. */
function pageOf(provider: PretendedProvider, url: URL, all: unknown[]): { page: unknown[]; next: string | undefined } {
  const number = Number(url.searchParams.get('page') ?? 1);
  const end = number * provider.pageSize;
  url.searchParams.set('page', String(number + 1));
  const next = `${provider.namesItself ?? provider.origin}${url.pathname}${url.search}`;
  return { page: all.slice(end - provider.pageSize, end), next: end < all.length ? next : undefined };
}

function linked(provider: PretendedProvider, url: URL, all: unknown[] | undefined): PretendedAnswer {
  if (!all) return { status: 404 };
  const { page, next } = pageOf(provider, url, all);
  const first = `<${provider.origin}/first>; rel="first"`;
  return { status: 200, headers: { link: next ? `${first}, <${next}>; rel="next"` : first }, body: page };
}

function enveloped(provider: PretendedProvider, url: URL, all: unknown[] | undefined): PretendedAnswer {
  if (!all) return { status: 404 };
  const { page, next } = pageOf(provider, url, all);
  return { status: 200, body: { values: page, pagelen: provider.pageSize, ...(next ? { next } : {}) } };
}
