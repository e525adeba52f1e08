import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import type { Platform } from '#platform/context.ts';
import { createArgoCdLoop } from '#services/kinds/argocd-app/index.ts';

/** App as a test defines it; the server derives the rest as Argo CD does. */
export interface TestArgoCdApp {
  name: string;
  namespace?: string;
  project?: string;
  /** Destination: address or name of a cluster, and the namespace there. */
  destination?: { server?: string; name?: string; namespace?: string };
  source?: Record<string, unknown>;
  sources?: Record<string, unknown>[];
  sync?: string;
  revision?: string;
  health?: string;
  operation?: { phase: string; startedAt?: string; finishedAt?: string };
  deleting?: boolean;
  /** Kubernetes resources of the application. */
  resources?: Record<string, unknown>[];
}

export const IN_CLUSTER = 'https://kubernetes.default.svc';

/** Account and the projects that it may see. */
interface Account {
  username: string;
  /** Visible projects; null for all. */
  projects: string[] | null;
}

/**
 * Server with the part of Argo CD's REST API that the program reads (its `swagger.json`: VersionService, SessionService, AccountService,
 * ApplicationService, ClusterService). It has bearer tokens, errors in the form of gRPC gateways, lists without what an account may not
 * see, and selection of fields.
 */
export class TestArgoCd {
  readonly apps = new Map<string, TestArgoCdApp>();
  readonly accounts = new Map<string, Account>();
  clusters: { server: string; name: string }[] = [{ server: IN_CLUSTER, name: 'in-cluster' }];
  /** Requested paths with their query. */
  readonly requests: string[] = [];
  /** Replaces every answer while it is set. */
  instead: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /** Holds every answer back until it resolves. */
  gate: Promise<void> = Promise.resolve();
  /** Token of an account that sees everything. */
  readonly token = `argocd-${newId()}`;
  #server: Server | undefined;
  #port = 0;

  constructor() {
    this.accounts.set(this.token, { username: 'quarterdeck', projects: null });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens; after a stop, on the same port as before. */
  async start(): Promise<this> {
    const server = createServer((request, response) => void this.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
    return this;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    server?.closeAllConnections();
    await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
  }

  /** Creates or changes an app. */
  put(app: TestArgoCdApp): void {
    const key = `${app.namespace ?? 'argocd'}/${app.name}`;
    this.apps.set(key, { ...this.apps.get(key), ...app });
  }

  remove(name: string, namespace = 'argocd'): void {
    this.apps.delete(`${namespace}/${name}`);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests.push(request.url!);
    await this.gate;
    if (this.instead) return this.instead(request, response);
    const url = new URL(request.url!, this.url);
    const { status, body } = this.#handle(url, request.headers.authorization);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  }

  #handle(url: URL, authorization: string | undefined): { status: number; body: unknown } {
    if (url.pathname === '/api/version') return ok({ Version: 'v3.1.0+test' });
    const account = this.accounts.get(authorization?.replace(/^Bearer /, '') ?? '');
    if (!account)
      return failed(401, 16, authorization ? 'invalid session: token signature is invalid' : 'no session information');
    const path = url.pathname.replace('/api/v1', '');
    if (path === '/session/userinfo') return ok({ loggedIn: true, username: account.username, iss: 'argocd' });
    if (path.startsWith('/account/can-i/')) return ok({ value: account.projects?.length === 0 ? 'no' : 'yes' });
    if (path === '/clusters')
      return ok({ metadata: {}, items: account.projects === null ? this.clusters.map((one) => ({ ...one })) : null });
    if (path === '/applications') return ok(select(this.#list(account), url.searchParams.get('fields')));
    const [, name, part] = /^\/applications\/([^/]+)\/(managed-resources)$/.exec(path) ?? [];
    return name && part
      ? this.#resources(account, decodeURIComponent(name), url.searchParams)
      : failed(404, 5, 'Not Found');
  }

  #list({ projects }: Account): Record<string, unknown> {
    const seen = [...this.apps.values()].filter((app) => projects?.includes(app.project ?? 'default') ?? true);
    return { metadata: { resourceVersion: '1' }, items: seen.length === 0 ? null : seen.map(toApplication) };
  }

  #resources({ projects }: Account, name: string, query: URLSearchParams): { status: number; body: unknown } {
    const app = this.apps.get(`${query.get('appNamespace') || 'argocd'}/${name}`);
    const project = query.get('project');
    // Without the project a caller does not learn whether the app exists.
    if (!app || (project && project !== (app.project ?? 'default')))
      return project
        ? failed(404, 5, `applications.argoproj.io "${name}" not found`)
        : failed(403, 7, 'permission denied');
    if (projects && !projects.includes(app.project ?? 'default')) return failed(403, 7, 'permission denied');
    return ok({ items: app.resources ?? null });
  }
}

const ok = (body: unknown) => ({ status: 200, body });
const failed = (status: number, code: number, message: string) => ({
  status,
  body: { error: message, code, message },
});

function toApplication(app: TestArgoCdApp): Record<string, unknown> {
  const source = app.source ?? {
    repoURL: 'https://github.com/acme/deploy.git',
    path: `apps/${app.name}`,
    targetRevision: 'main',
  };
  return {
    metadata: {
      name: app.name,
      namespace: app.namespace ?? 'argocd',
      uid: newId(),
      creationTimestamp: '2026-01-02T03:04:05Z',
      ...(app.deleting ? { deletionTimestamp: '2026-02-02T03:04:05Z' } : {}),
    },
    spec: {
      project: app.project ?? 'default',
      destination: { server: IN_CLUSTER, namespace: app.name, ...app.destination },
      ...(app.sources ? { sources: app.sources } : { source }),
    },
    status: {
      sync: {
        status: app.sync ?? 'Synced',
        ...(app.revision ? { revision: app.revision } : {}),
        comparedTo: { source },
      },
      health: { status: app.health ?? 'Healthy' },
      history: Array.from({ length: 10 }, (_, id) => ({ id, source })),
      ...(app.operation ? { operationState: { operation: { sync: {} }, ...app.operation } } : {}),
    },
  };
}

/** Selects `fields` as Argo CD does: paths with dots that go through lists. The prefix `-`, which leaves fields out, is not supported. */
function select(body: Record<string, unknown>, fields: string | null): unknown {
  if (!fields) return body;
  return pick(
    body,
    fields.split(',').map((field) => field.split('.')),
  );
}

function pick(value: unknown, paths: string[][]): unknown {
  if (paths.some((path) => path.length === 0)) return value;
  if (Array.isArray(value)) return value.map((item) => pick(item, paths));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([key, inner]) => {
    const below = paths.filter((path) => path[0] === key).map((path) => path.slice(1));
    return below.length === 0 ? [] : [[key, pick(inner, below)] as const];
  });
  return Object.fromEntries(entries);
}

/** Provides an Argo CD while the tests of a file run. */
export function useArgoCd(hooks: {
  beforeAll(run: () => Promise<unknown>): void;
  afterAll(run: () => Promise<unknown>): void;
}): TestArgoCd {
  const server = new TestArgoCd();
  hooks.beforeAll(() => server.start());
  hooks.afterAll(() => server.stop());
  return server;
}

/** Makes the loop of a process that reads Argo CDs. */
export const loopOf = (platform: Platform) => createArgoCdLoop(platform, newId());

/** Reads every Argo CD that is due, as a process does in the background, and waits until each was read. */
export async function readArgoCds(platform: Platform, loop = loopOf(platform)): Promise<void> {
  const open = async () =>
    (
      await sql<{ n: number }>`select count(*)::int as n from argo_cd
        where claim_token is not null or next_at <= clock_timestamp()`.execute(platform.db)
    ).rows[0]!.n;
  await loop.look();
  await expect.poll(open, { timeout: 30_000 }).toBe(0);
  await loop.stop();
}
