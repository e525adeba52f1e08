import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTraffic, until } from '#runtimes/contract/setup.ts';
import { askProxy } from '#runtimes/proxy/control-client.ts';
import { createRouter, stopProxy } from '#runtimes/proxy/index.ts';
import { echo, fetchFrom, open, startUpstream } from '#runtimes/proxy/testing.ts';
import type { TestUpstream } from '#runtimes/proxy/testing.ts';
import type { RouteEntry, Upstream } from '#runtimes/router.ts';

const HOST = 'app-z1.localhost';
let directory: string;
let lines: string[];

const start = (port = 0) => createRouter({ directory, host: '127.0.0.1', port, log: (line) => lines.push(line) });
const routes = (upstreams: Upstream[], host = HOST): RouteEntry[] => [{ host, protocol: 'HTTP', upstreams }];

/** What a proxy says of itself. */
async function status() {
  const answer = await askProxy(directory, { do: 'status' }, 2000);
  return answer.ok ? answer.status! : expect.fail(answer.message);
}

async function nameAt(port: number): Promise<string> {
  const { status: code, body } = await fetchFrom(port, HOST);
  return code === 200 ? (JSON.parse(body).name as string) : String(code);
}

beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), 'proxy-')), 'a'.repeat(100));
  lines = [];
});

afterEach(async () => {
  await stopProxy(directory);
  rmSync(join(directory, '..'), { recursive: true });
});

test('routes are served as soon as they are set, and answer 404 as soon as they are removed', async () => {
  await using upstream = await startUpstream(echo('a'));
  const router = await start();
  await router.set('s1', 1, routes([upstream]));
  expect(await nameAt(router.port)).toBe('a');
  await router.set('s1', 1, routes([upstream]));
  expect(await nameAt(router.port)).toBe('a');
  await router.remove('s1');
  expect(await nameAt(router.port)).toBe('404');
  await router.remove('s1');
  await router.close();
});

test('a change takes away the hosts that the service no longer has', async () => {
  await using upstream = await startUpstream(echo('a'));
  const router = await start();
  await router.set('s1', 1, [...routes([upstream]), ...routes([upstream], 'www.example.org')]);
  expect((await fetchFrom(router.port, 'www.example.org')).status).toBe(200);
  await router.set('s1', 2, routes([upstream]));
  expect((await fetchFrom(router.port, 'www.example.org')).status).toBe(404);
  expect(await nameAt(router.port)).toBe('a');
});

test('a lower generation is refused as superseded, after a restart of the proxy too', async () => {
  await using a = await startUpstream(echo('a'));
  await using b = await startUpstream(echo('b'));
  const router = await start();
  await router.set('s1', 2, routes([b]));
  await expect(router.set('s1', 1, routes([a]))).rejects.toMatchObject({ name: 'RuntimeError', code: 'superseded' });
  await stopProxy(directory);
  await expect(router.set('s1', 1, routes([a]))).rejects.toMatchObject({ code: 'superseded' });
  expect(await nameAt(router.port)).toBe('b');
});

test('a host of another service is refused, and the present routes stay as they are', async () => {
  await using a = await startUpstream(echo('a'));
  await using b = await startUpstream(echo('b'));
  const router = await start();
  await router.set('s1', 1, routes([a]));
  const taken = [...routes([b], 'other.localhost'), ...routes([b], HOST.toUpperCase())];
  await expect(router.set('s2', 1, taken)).rejects.toMatchObject({
    code: 'refused',
    message: `The host name ${HOST.toUpperCase()} belongs to another service (s1).`,
  });
  expect(await nameAt(router.port)).toBe('a');
  expect((await fetchFrom(router.port, 'other.localhost')).status).toBe(404);
});

test('no request fails and none reaches the old instance once the new one has the traffic', async () => {
  const releases: TestUpstream[] = [];
  let stop: ReturnType<typeof startTraffic> | undefined;
  const agent = new Agent({ keepAlive: true });
  try {
    const router = await start();
    const release = async (generation: number) => {
      let isOld = false;
      const late: string[] = [];
      const upstream = await startUpstream((_request, response) => {
        if (isOld) late.push(`a request reached release ${generation} after it was drained`);
        setTimeout(() => response.end(JSON.stringify({ name: String(generation) })), Math.random() * 20);
      });
      releases.push(upstream);
      await router.set('s1', generation, routes([upstream]));
      return { upstream, late, end: () => (isOld = true) };
    };
    let present = await release(1);
    stop = startTraffic(() => fetchFrom(router.port, HOST, { agent }), 16);
    for (let generation = 2; generation <= 12; generation++) {
      const next = await release(generation);
      await router.drained([present.upstream], 5000);
      present.end();
      // An instance that is asked to end closes its listener and its idle connections.
      present.upstream.server.close();
      present.upstream.server.closeIdleConnections();
      await new Promise((resolve) => setTimeout(resolve, 30));
      expect(present.late).toEqual([]);
      present = next;
    }
    const { sent, failures } = await stop();
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThan(100);
  } finally {
    await stop?.();
    agent.destroy();
    for (const upstream of releases) await upstream[Symbol.asyncDispose]();
  }
});

test('drained waits for what is under way, but no longer than it may', async () => {
  const { promise: go, resolve } = Promise.withResolvers<void>();
  await using upstream = await startUpstream((_request, response) => void go.then(() => response.end('late')));
  const router = await start();
  await router.set('s1', 1, routes([upstream]));
  const answer = fetchFrom(router.port, HOST);
  await until(status, ({ underWay }) => underWay === 1);
  const started = performance.now();
  await router.drained([upstream], 100);
  expect(performance.now() - started).toBeGreaterThanOrEqual(99);
  let drained = false;
  const waiting = router.drained([upstream], 10_000).then(() => (drained = true));
  await new Promise((next) => setTimeout(next, 50));
  expect(drained).toBe(false);
  resolve();
  await waiting;
  expect(await answer).toMatchObject({ status: 200, body: 'late' });
});

test('drained of what is not there is done at once', async () => {
  const router = await start();
  await router.drained([{ address: '127.0.0.1', port: 9 }], 10_000);
});

test('a proxy that is killed is back with its routes and its port', async () => {
  await using upstream = await startUpstream(echo('a'));
  const router = await start();
  await router.set('s1', 3, routes([upstream]));
  const { pid } = await status();
  process.kill(pid, 'SIGKILL');
  await until(
    () => nameAt(router.port).catch(String),
    (name) => name === 'a',
  );
  expect((await status()).pid).not.toBe(pid);
  await router.set('s1', 4, routes([upstream]));
});

test('a change waits for a proxy that is just being started again', async () => {
  await using upstream = await startUpstream(echo('a'));
  const router = await start();
  process.kill((await status()).pid, 'SIGKILL');
  await router.set('s1', 1, routes([upstream]));
  expect(await nameAt(router.port)).toBe('a');
});

test('the proxy serves on when the control plane is killed, and the next one takes it over', async () => {
  await using upstream = await startUpstream(echo('a'));
  const program = `
    const { createRouter } = await import('#runtimes/proxy/index.ts');
    const [directory, upstream] = process.argv.slice(1);
    const router = await createRouter({ directory, host: '127.0.0.1', port: 0, log() {} });
    await router.set('s1', 1, [{ host: '${HOST}', protocol: 'HTTP', upstreams: [JSON.parse(upstream)] }]);
    console.log(router.port);
    setInterval(() => undefined, 1000);
  `;
  const { address, port } = upstream;
  const args = ['--input-type=module', '-e', program, directory, JSON.stringify({ address, port })];
  const controlPlane = spawn(process.execPath, args, {
    cwd: new URL('../../..', import.meta.url),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(controlPlane.stdout!, 'data');
  const proxyPort = Number(String(line));
  controlPlane.kill('SIGKILL');
  await once(controlPlane, 'exit');
  expect(await nameAt(proxyPort)).toBe('a');
  const { pid } = await status();
  const router = await start();
  expect(router.port).toBe(proxyPort);
  expect((await status()).pid).toBe(pid);
  expect(lines).toEqual([expect.stringContaining('is taken over with 1 service')]);
});

test('a proxy with other settings is replaced and keeps the routes', async () => {
  await using upstream = await startUpstream(echo('a'));
  const first = await start();
  await first.set('s1', 1, routes([upstream]));
  const { pid, port } = await status();
  await using free = await startUpstream(echo('free'));
  const wanted = free.port;
  await free[Symbol.asyncDispose]();
  const second = await start(wanted);
  expect(second.port).toBe(wanted);
  expect((await status()).pid).not.toBe(pid);
  expect(await nameAt(wanted)).toBe('a');
  await expect(open(port, HOST)).rejects.toThrow('ECONNREFUSED');
});

test('a port that is taken is told, and nothing is left running', async () => {
  await using other = await startUpstream(echo('other'));
  await expect(start(other.port)).rejects.toMatchObject({
    name: 'RuntimeError',
    message: expect.stringContaining(`EADDRINUSE: address already in use 127.0.0.1:${other.port}`),
  });
  await expect(status()).rejects.toMatchObject({ code: 'ENOENT' });
});

test('a damaged file of routes costs that service only', async () => {
  await using upstream = await startUpstream(echo('a'));
  const router = await start();
  await router.set('s1', 1, routes([upstream]));
  await router.set('s2', 1, routes([upstream], 'two.localhost'));
  await stopProxy(directory);
  truncateSync(join(directory, 'routes', 's2.json'), 10);
  await start();
  expect(await nameAt(router.port)).toBe('a');
  expect((await fetchFrom(router.port, 'two.localhost')).status).toBe(404);
  await router.set('s2', 1, routes([upstream], 'two.localhost'));
  expect((await fetchFrom(router.port, 'two.localhost')).status).toBe(200);
});
