import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { serverLog } from '#runtimes/proxy/caddy/config.ts';
import type { CaddyOptions, CaddyRouter } from '#runtimes/proxy/caddy/index.ts';
import { startCaddyRouter, stopCaddyProxy } from '#runtimes/proxy/caddy/testing.ts';
import { echo, startUpstream, type TestUpstream } from '#runtimes/proxy/contract/upstreams.ts';
import { fetchFrom } from '#runtimes/proxy/contract/visitors.ts';
import type { RouteEntry } from '#runtimes/router.ts';
import { freePort } from '#test/harness/free-port.ts';

/** Two control planes that configure one Caddy, as after a hand-over or with several processes on a machine. */
let directory: string;
let httpsPort: number;
let routers: CaddyRouter[];
let upstream: TestUpstream;

const start = async (options: Partial<CaddyOptions> = {}): Promise<CaddyRouter> => {
  const https = { port: httpsPort, directoryUrl: 'https://127.0.0.1:1/dir', email: '', rootsFile: '' };
  const router = await startCaddyRouter(directory, { https, ...options });
  routers.push(router);
  return router;
};

const route = (host: string, to: TestUpstream = upstream, certificate = false): RouteEntry => ({
  host,
  protocol: 'HTTP',
  upstreams: [{ address: to.address, port: to.port }],
  certificate,
});

/** Returns whether a connection to the port of HTTPS succeeds. */
async function servesHttps(): Promise<boolean> {
  const socket = connect(httpsPort, '127.0.0.1');
  try {
    return await once(socket, 'connect').then(
      () => true,
      () => false,
    );
  } finally {
    socket.destroy();
  }
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'caddy-'));
  httpsPort = await freePort();
  routers = [];
  upstream = await startUpstream(echo('a'));
});

afterEach(async () => {
  for (const router of routers) await router.close();
  await stopCaddyProxy(directory);
  await upstream[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

test('HTTPS that one process switched on is still served after another process changes routes', async () => {
  const [first, second] = [await start(), await start()];
  await first.set('s1', 1, [route('secure.example.com', upstream, true)]);
  expect(await servesHttps()).toBe(true);
  await second.set('s2', 1, [route('plain.example.com')]);
  expect(await servesHttps()).toBe(true);
  const [status] = await second.certificates(['secure.example.com']);
  expect(status!.lastError ?? '').not.toContain('HTTPS cannot be served');
  expect((await fetchFrom(first.port, 'plain.example.com')).status).toBe(200);
});

test('a host that one process gave to a service is refused to another service in every process', async () => {
  await using other = await startUpstream(echo('b'));
  const host = 'shop.example.com';
  const [first, second] = [await start(), await start()];
  await first.set('s1', 1, [route(host)]);
  await expect(second.set('s2', 1, [route(`${host}.`, other)])).rejects.toThrow('belongs to another service (s1)');
  await second.set('s3', 1, [route('else.example.com', other)]);
  for (let n = 0; n < 4; n++) expect((await fetchFrom(first.port, host)).headers['x-upstream']).toBe('a');
});

test('of processes that give one host to services of their own at once, one succeeds', async () => {
  const all = await Promise.all(Array.from({ length: 4 }, () => start()));
  const outcomes = await Promise.allSettled(all.map((router, n) => router.set(`s${n}`, 1, [route('one.example.com')])));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});

test('HTTPS is served once its port is free, without a change of routes', async () => {
  const holder = createServer();
  await once(holder.listen(httpsPort, '127.0.0.1'), 'listening');
  const router = await start();
  const host = 'secure.example.com';
  await router.set('s1', 1, [route(host, upstream, true)]);
  const [status] = await router.certificates([host]);
  expect(status).toMatchObject({ state: 'FAILED', lastError: expect.stringContaining('EADDRINUSE') });
  await new Promise((resolve) => holder.close(resolve));
  await router.certificates([host]);
  expect(await servesHttps()).toBe(true);
  const [later] = await router.certificates([host]);
  expect(later!.lastError ?? '').not.toContain('HTTPS cannot be served');
});

test('drained gives up in time on a Caddy that does not answer', { timeout: 25_000 }, async () => {
  const router = await start();
  await router.set('s1', 1, [route('frozen.example.com')]);
  const pid = router.pid!;
  process.kill(pid, 'SIGSTOP');
  try {
    await router.drained([upstream], 300);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
});

test("what Go's HTTP server reports of connections, panics among it, is on disk", async () => {
  const router = await start({ reportsServer: true });
  await router.set('s1', 1, [route('secure.example.com', upstream, true)]);
  const socket = connect(httpsPort, '127.0.0.1', () => socket.end('no handshake at all'));
  await once(socket.resume(), 'close');
  await expect.poll(() => readFileSync(serverLog(join(directory, 'caddy')), 'utf8')).toContain('TLS handshake error');
});
