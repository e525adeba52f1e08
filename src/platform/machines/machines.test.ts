import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { pino } from 'pino';
import { allRoutes } from '#app/routes.ts';
import { allSockets } from '#app/sockets.ts';
import { newId } from '#kernel/ids.ts';
import { RateLimiter } from '#platform/access/rate-limit.ts';
import { createServer } from '#platform/http/server.ts';
import { ApiAnnouncement } from '#platform/machines/directory.ts';
import { requireMachine } from '#platform/machines/elsewhere.ts';
import { makePass, PASS_HEADER } from '#platform/machines/pass.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import { createResolver } from '#platform/dns/resolver.ts';
import { createImages } from '#services/images/registry-images.ts';
import { createRepositoryReader } from '#services/sources/repository-reader.ts';
import { createSources } from '#app/git.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { follow, listen as listenForRequests } from '#test/harness/stream.ts';
import { makeExample, useEngine, type TestEngine } from '#test/harness/engine.ts';
import { connect, listen, refusal } from '#test/harness/sockets.ts';

const [HERE, THERE] = [newId(), newId()];
const LIMIT = 500;

/** The API process of a machine that no cluster lives on. */
const app = useApp(
  { QUARTERDECK_RATE_LIMIT_PER_HOUR: String(LIMIT) },
  {
    runtimeOf: async ({ nodeId }) => {
      requireMachine(HERE, nodeId);
      return engine.runtime;
    },
  },
);
const engine: TestEngine = useEngine(app);

/** Shells on the machine that the cluster lives on; none without. */
let exec: Runtime['exec'];

/** The API process of the machine that the cluster lives on. */
let there: ReturnType<typeof createServer>;
let admin: Actor;
let application: { id: string };
let environment: { id: string; cluster_id: string };

beforeAll(async () => {
  const needs = {
    repositories: createRepositoryReader(createSources(app.platform)),
    images: createImages(app.platform),
    resolver: createResolver([]),
    runtimeOf: async ({ nodeId }: { nodeId: string | null }) => {
      requireMachine(THERE, nodeId);
      return { logs: engine.runtime.logs.bind(engine.runtime), exec } as unknown as Runtime;
    },
  };
  there = createServer({
    platform: app.platform,
    sessions: null,
    limiter: new RateLimiter(app.db, LIMIT),
    routes: allRoutes(needs),
    sockets: allSockets(needs),
    log: pino({ level: 'silent' }),
  });
  await there.listen({ host: '127.0.0.1', port: 0 });
  await app.db
    .insertInto('node')
    .values([
      { id: HERE, name: 'here' },
      { id: THERE, name: 'there' },
    ])
    .execute();
  admin = await app.organization();
  ({ application, environment } = await makeExample(admin));
  ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
  await app.db.updateTable('cluster').set({ node_id: THERE }).where('id', '=', environment.cluster_id).execute();
});
afterAll(async () => {
  await there.close();
});
const announcements: ApiAnnouncement[] = [];
afterEach(async () => {
  for (const announcement of announcements.splice(0)) await announcement.stop();
  await app.db.updateTable('node').set({ api_url: null }).execute();
});

const urlOfThere = () => `http://127.0.0.1:${(there.server.address() as AddressInfo).port}`;
async function announce(url = urlOfThere(), machine = THERE) {
  const announcement = new ApiAnnouncement(app.db, machine, url, app.platform.log);
  announcements.push(announcement);
  await announcement.start();
  return announcement;
}
const log = (actor: Actor = admin) => actor.get(`/application/${application.id}/log?tail=5`);

test('the log of a service is answered by the machine that it runs on, whichever process is asked', async () => {
  const announcement = await announce();
  const { results } = ok(await log(), 200);
  expect(results.length).toBeGreaterThan(0);
  expect(results).toEqual(ok(await log(), 200).results);
  await announcement.stop();
  expect(await log()).toMatchObject({ status: 502, body: { message: expect.stringContaining(THERE) } });
});

test('without a known or living API of that machine the answer names the machine and the setting', async () => {
  expect(await log()).toMatchObject({
    status: 502,
    body: {
      message: expect.stringMatching(/on the machine .+: its API is not known here: set QUARTERDECK_MACHINE_URL/),
    },
  });
  await announce('http://127.0.0.1:1');
  expect(await log()).toMatchObject({
    status: 502,
    body: { message: expect.stringMatching(/asked from here: 127.0.0.1:1 could not be reached: .*ECONNREFUSED/) },
  });
});

test('a machine that has not shown for a while is not asked', async () => {
  await announce();
  const longAgo = new Date(Date.now() - 3_600_000);
  await app.db.updateTable('node').set({ api_seen_at: longAgo }).where('id', '=', THERE).execute();
  expect(await log()).toMatchObject({ status: 502, body: { message: expect.stringContaining('is not known here') } });
});

test('the other machine looks at the rights of the caller itself', async () => {
  await announce();
  const stranger = await app.organization();
  expect((await log(stranger)).status).toBe(404);
  const { token } = await admin.withScope('READ');
  expect((await app.anonymous('GET', `/application/${application.id}/log`)).status).toBe(401);
  const answer = await there.inject({
    method: 'GET',
    url: `/application/${application.id}/log`,
    headers: { authorization: `Token ${token}x`, [PASS_HEADER]: passOf(`/application/${application.id}/log`) },
  });
  expect(answer.statusCode).toBe(401);
});

const passOf = (url: string, at = new Date()) => makePass(app.platform.vault, at, 'GET', url);
const remaining = (answer: { headers: Record<string, unknown> }) => Number(answer.headers['x-ratelimit-remaining']);

test('a request that is sent on counts once against the rate limit, and a forged or old pass counts as none', async () => {
  await announce();
  const first = remaining(await log());
  expect(remaining(await log())).toBe(first - 1);
  const url = `/application/${application.id}/log`;
  const direct = (pass: string) =>
    there.inject({ method: 'GET', url, headers: { authorization: `Token ${admin.token}`, [PASS_HEADER]: pass } });
  expect((await direct(passOf(url))).headers['x-ratelimit-remaining']).toBeUndefined();
  for (const pass of [
    passOf('/organization'),
    passOf(url, new Date(Date.now() - 120_000)),
    `${Date.now()}.AAAA`,
    'x',
    `${Date.now()}.`,
  ])
    expect((await direct(pass)).headers['x-ratelimit-remaining'], pass).toBeDefined();
});

test('machines that take each other for the one that is asked do not send a request round and round', async () => {
  const here = (await listen(app)).replace('ws:', 'http:');
  await announce(here);
  expect(await log()).toMatchObject({
    status: 502,
    body: { message: expect.stringContaining('compare the files node-id') },
  });
});

const followed = async (headers: Record<string, string> = {}) => {
  const base = await listenForRequests(app.server);
  return follow(`${base}/application/${application.id}/log?follow=true`, admin.token, headers);
};

test('a followed log is carried as it comes, resumes on the other machine, and is refused as there', async () => {
  await announce();
  const [route] = engine.runtime.specOf(application.id)!.routes;
  await engine.router.get(route!.host, '/say?text=carried');
  const first = await followed();
  await first.until((events) => events.at(-1)?.data.message === 'carried');
  await first.close();
  const second = await followed({ 'last-event-id': first.events.at(-2)!.id });
  await second.until(1);
  expect(second.events).toEqual([first.events.at(-1)]);
  await second.close();
  expect(await followed({ 'last-event-id': 'nonsense' })).toMatchObject({ status: 400 });
});

test('a web socket is carried both ways, and its refusals as well', async () => {
  await announce();
  const query = { organization: admin.organizationId, service: application.id };
  const client = await connect(app, '/service/logs', query, { token: admin.token });
  await expect.poll(() => client.texts().length).toBeGreaterThan(0);
  client.socket.close();
  expect((await client.closed).code).toBe(1005);

  const browser = await connect(app, '/service/logs', query, { protocols: ['v1', `auth.bearer.${admin.token}`] });
  expect(browser.protocol).toBe('v1');
  browser.socket.close();

  exec = async (_handle, request) => {
    for await (const part of request.stdin!) request.stdout.write(Buffer.concat([Buffer.from('>'), part as Buffer]));
    return { exitCode: 3, stderr: '' };
  };
  const shell = { ...query, command: ['cat'], tty_width: 0, tty_height: 0 };
  const shellClient = await connect(app, '/shell/exec', shell, { token: admin.token });
  shellClient.socket.send(Buffer.from([0xff, 0x00]));
  await expect.poll(() => shellClient.bytes()).toEqual(Buffer.from([0x3e, 0xff, 0x00]));
  shellClient.socket.send(Buffer.from([0x04]));
  expect(await shellClient.closed).toEqual({ code: 1000, reason: 'exit status 3' });

  exec = undefined;
  expect(await refusal(app, '/shell/exec', shell, { token: admin.token })).toMatchObject({
    status: 400,
    body: { message: expect.stringContaining('on clusters of the runtime fake') },
  });
});

test('what is carried ends when this server closes, a followed log with the reason', async () => {
  await announce();
  const stream = await followed();
  await stream.until(1);
  const query = { organization: admin.organizationId, service: application.id };
  const client = await connect(app, '/service/logs', query, { token: admin.token });
  await app.server.close();
  expect((await client.closed).code).toBe(1006);
  await stream.ended;
  expect(stream.events.at(-1)).toMatchObject({ event: 'end', data: { status: 503 } });
});
