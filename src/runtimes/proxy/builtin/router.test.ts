import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { askProxy } from '#runtimes/proxy/builtin/control-client.ts';
import { createRouter, stopProxy } from '#runtimes/proxy/builtin/index.ts';
import { echo, startUpstream } from '#runtimes/proxy/contract/upstreams.ts';
import { fetchFrom, open } from '#runtimes/proxy/contract/visitors.ts';
import type { RouteEntry, Upstream } from '#runtimes/router.ts';

const HOST = 'app-z1.localhost';
let directory: string;
let lines: string[];

const start = (port = 0) => createRouter({ directory, host: '127.0.0.1', port, log: (line) => lines.push(line) });
const routes = (upstreams: Upstream[], host = HOST): RouteEntry[] => [{ host, protocol: 'HTTP', upstreams }];

/** Returns the proxy's own status. */
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

test('the proxy serves on when the control plane is killed, and the next one takes it over', async () => {
  await using upstream = await startUpstream(echo('a'));
  const program = `
    const { createRouter } = await import('#runtimes/proxy/builtin/index.ts');
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
  expect(lines).toContainEqual(expect.stringContaining('is taken over with 1 service'));
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

test('a host that two services have on disk goes to one of them, and the proxy starts', async () => {
  await using a = await startUpstream(echo('a'));
  await using b = await startUpstream(echo('b'));
  const first = await start();
  await first.set('s1', 1, routes([a]));
  await first.set('s2', 1, [...routes([b], 'other.localhost')]);
  await stopProxy(directory);
  const file = join(directory, 'routes/s2.json');
  const stored = JSON.parse(readFileSync(file, 'utf8')) as { routes: RouteEntry[] };
  writeFileSync(
    file,
    JSON.stringify({ ...stored, routes: [...stored.routes, ...routes([b], `${HOST.toUpperCase()}.`)] }),
  );
  const { port } = await start();
  expect(await nameAt(port)).toBe('a');
  expect((await fetchFrom(port, 'other.localhost')).headers['x-upstream']).toBe('b');
});

test('the log says so when the proxy is reachable from other machines without HTTPS, and what to install', async () => {
  await createRouter({ directory, host: '0.0.0.0', port: 0, log: (line) => lines.push(line) });
  expect(lines).toContainEqual(expect.stringMatching(/listens on 0\.0\.0\.0 without HTTPS.*apt-get install caddy/));
  await stopProxy(directory);
  lines = [];
  await start();
  expect(lines.join()).not.toContain('HTTPS');
});
