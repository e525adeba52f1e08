import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { ClientConfig } from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, inject } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { systemClock } from '#kernel/clock.ts';
import { RateLimiter } from '#platform/access/rate-limit.ts';
import { makeToken } from '#platform/access/tokens.ts';
import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import { createEventStreams } from '#delivery/stream/index.ts';
import { CANCELLATIONS, DEPLOYMENTS, PROGRESS } from '#deployments/index.ts';
import { createNotifier } from '#platform/database/notify.ts';
import { openDatabase, type Database, type OpenDatabase } from '#platform/database/index.ts';
import { createServer } from '#platform/http/server.ts';
import { readSettings } from '#platform/settings/index.ts';
import { openInstallation } from '#platform/vault/key.ts';
import { createImages } from '#services/images/registry-images.ts';
import { createRepositoryReader } from '#services/sources/repository-reader.ts';
import { allRoutes } from '#app/routes.ts';
import type { Route } from '#platform/http/route.ts';
import { allSockets } from '#app/sockets.ts';
import { createSources } from '#app/git.ts';
import { createResolver } from '#platform/dns/resolver.ts';
import { createSessions } from '#resources/enterprise-connection/index.ts';
import { makeAdministrator, makeOrganization } from '#resources/organization/bootstrap.ts';
import { cloneDatabase } from '#test/harness/database.ts';
import { MADE_IMAGES } from '#test/harness/made-images.ts';

/** Answer of the API: status, parsed body, headers. */
export interface Answer {
  status: number;
  body: any;
  headers: Record<string, string | string[] | number | undefined>;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Client of the API. */
export interface Caller {
  call(method: Method, url: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(url: string, headers?: Record<string, string>): Promise<Answer>;
  post(url: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  put(url: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  delete(url: string, headers?: Record<string, string>): Promise<Answer>;
}

/** Client of the API with a token. */
export interface Actor extends Caller {
  organizationId: string;
  userId: string;
  token: string;
  /** Creates another actor of the same organization with a token of the given scope. */
  withScope(scope: 'ADMIN' | 'WRITE' | 'DEPLOY' | 'READ'): Promise<Actor>;
}

export interface TestApp {
  server: FastifyInstance;
  platform: Platform;
  db: Database;
  /** Database connection for the engine of a test (test/harness/engine.ts). */
  database: OpenDatabase;
  databaseConfig: ClientConfig;
  installationId: string;
  context: Context;
  /** Creates an organization with a cluster on the fake runtime, and returns its administrator. */
  organization(name?: string): Promise<Actor>;
  /** Returns a client with a session of the identity provider that the settings name. */
  session(token: string): Caller;
  /** Calls without credentials. */
  anonymous(method: Method, url: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  close(): Promise<void>;
}

/** Dependencies that a test passes instead of the program's own. */
export type TestNeeds = NonNullable<Parameters<typeof allRoutes>[0]> & {
  socketPingMs?: number;
  /** Puts something around each operation. */
  wrap?(route: Route): Route;
  nodeUsage?: NonNullable<NonNullable<Parameters<typeof allSockets>[0]>['nodeUsage']>;
};

/**
 * Provides the whole application on a database of its own, without a socket. It closes after the file; a leaked connection fails the file.
 */
export function useApp(
  settings: Record<string, string> = {},
  needs: TestNeeds = {},
  onStatement?: (text: string) => void,
  onLog?: (line: string) => void,
): TestApp {
  const app = {} as TestApp;
  beforeAll(async () => void Object.assign(app, await startTestApp(settings, needs, onStatement, onLog)));
  afterAll(() => app.close());
  return app;
}

export async function startTestApp(
  extra: Record<string, string> = {},
  needs: TestNeeds = {},
  onStatement?: (text: string) => void,
  onLog?: (line: string) => void,
): Promise<TestApp> {
  const clone = await cloneDatabase(inject('postgres'), inject('template'));
  const dataDir = mkdtempSync(path.join(tmpdir(), 'qd-test-'));
  const settings = readSettings({
    QUARTERDECK_DATA_DIR: dataDir,
    QUARTERDECK_RATE_LIMIT_PER_HOUR: '0',
    QUARTERDECK_LOCAL_GIT_ROOTS: path.dirname(inject('example')),
    ...MADE_IMAGES,
    // Every organization of a test may use every runtime.
    QUARTERDECK_ORGANIZATION_RUNTIMES: '*=*',
    ...extra,
  });
  const level = extra.QUARTERDECK_LOG_LEVEL ?? 'silent';
  const log = onLog ? pino({ level }, { write: onLog }) : pino({ level });
  const open: OpenDatabase = openDatabase({
    config: { ...clone.config, max: 10 },
    ...(onStatement ? { onStatement } : {}),
  });
  const { vault, installationId } = await openInstallation(open.db, [randomBytes(32)]);
  const notifier = createNotifier(open.pool);
  const platform: Platform = {
    db: open.db,
    vault,
    settings,
    clock: systemClock,
    log,
    notify: (channel, payload) => notifier.notify(channel, payload),
  };
  const context = systemContext(platform);
  const streams = createEventStreams({
    platform,
    directConfig: clone.config,
    channels: [PROGRESS, DEPLOYMENTS, CANCELLATIONS],
  });
  const sources = createSources(platform);
  const all = {
    streams,
    repositories: createRepositoryReader(sources),
    storeFolder: sources.storeFolder,
    images: createImages(platform),
    resolver: createResolver(settings.dnsServers),
    ...needs,
  };
  const server = createServer({
    platform,
    sessions: await createSessions(platform),
    limiter: new RateLimiter(open.db, settings.rateLimitPerHour),
    routes: allRoutes(all).map((route) => needs.wrap?.(route) ?? route),
    sockets: allSockets(all),
    ...(needs.socketPingMs === undefined ? {} : { socketPingMs: needs.socketPingMs }),
    log,
  });
  const send =
    (authorization: string | undefined) =>
    async (method: Method, url: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> => {
      const leave = new AbortController();
      const follows = method === 'GET' && STREAM.test(url);
      const response = await server.inject({
        ...(follows ? { payloadAsStream: true as const, signal: leave.signal } : {}),
        method,
        url,
        headers: {
          ...(authorization ? { authorization } : {}),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined
          ? {}
          : { payload: typeof body === 'string' || body instanceof Buffer ? body : JSON.stringify(body) }),
      });
      if (follows) return { ...(await beginningOf(response)), ...(leave.abort(), {}) };
      const json = String(response.headers['content-type'] ?? '').startsWith('application/json');
      return {
        status: response.statusCode,
        body: json && response.body ? JSON.parse(response.body) : response.body,
        headers: response.headers,
      };
    };
  const actor = async (organizationId: string, userId: string, scope: string): Promise<Actor> => {
    const id = newId();
    const { token, hash } = makeToken(id);
    await open.db
      .insertInto('api_token')
      .values({
        id,
        organization_id: organizationId,
        name: `${scope} ${id}`,
        scope,
        secret_hash: hash,
        created_by: userId,
      })
      .execute();
    return {
      organizationId,
      userId,
      token,
      ...callerOf(send(`Token ${token}`)),
      withScope: (other) => actor(organizationId, userId, other),
    };
  };
  return {
    server,
    platform,
    db: open.db,
    database: open,
    databaseConfig: clone.config,
    installationId,
    context,
    organization: async (name = `organization ${newId()}`) => {
      const [organizationId, userId] = await inTransaction(context, async (inside) => {
        const user = await makeAdministrator(inside);
        const organization = await makeOrganization(inside, name, user);
        await inside.db
          .insertInto('cluster')
          .values({ id: newId(), organization_id: organization, name: 'test', runtime: 'fake', is_default: true })
          .execute();
        return [organization, user] as const;
      });
      return actor(organizationId, userId, 'ADMIN');
    },
    session: (token) => callerOf(send(`Bearer ${token}`)),
    anonymous: send(undefined),
    close: async () => {
      await server.close();
      await streams.close();
      await notifier.flush();
      await open.close();
      await clone.drop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Endpoints that answer until the caller leaves: only the beginning is read here (src/resources/event-stream tests the rest). */
const STREAM = /\/eventStream(?:\?|$)/;

async function beginningOf(response: Awaited<ReturnType<FastifyInstance['inject']>>): Promise<Answer> {
  const { statusCode: status, headers } = response;
  let text = '';
  for await (const chunk of response.stream()) {
    text += String(chunk);
    if (status === 200 && text.includes('\nid: ')) break;
  }
  const json = String(headers['content-type'] ?? '').startsWith('application/json');
  return { status, body: json ? JSON.parse(text) : text, headers };
}

const callerOf = (call: Caller['call']): Caller => ({
  call,
  get: (url, headers) => call('GET', url, undefined, headers),
  post: (url, body, headers) => call('POST', url, body, headers),
  put: (url, body, headers) => call('PUT', url, body, headers),
  delete: (url, headers) => call('DELETE', url, undefined, headers),
});

/** Asserts the status and returns the body; the error shows the body of any other status. */
export function ok<T = any>(answer: Answer, status: number): T {
  expect(answer.status, JSON.stringify(answer.body)).toBe(status);
  return answer.body as T;
}
