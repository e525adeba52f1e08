import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectHttp2, constants, createServer as createHttp2Server } from 'node:http2';
import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '#runtimes/contract/setup.ts';
import { askProxy } from '#runtimes/proxy/builtin/control-client.ts';
import { createRouter, stopProxy, type RouterOptions } from '#runtimes/proxy/builtin/index.ts';
import { controlSockets, type ProxyStatus } from '#runtimes/proxy/builtin/protocol.ts';
import { readShim, replaceProcess } from '#runtimes/tools/shim/index.ts';
import type { Upstream } from '#runtimes/router.ts';
import { Conversation, Traffic, trafficApplication } from '#test/harness/traffic.ts';

const HOST = 'app-z1.localhost';
let directory: string;
let applications: ChildProcess[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'handover-'));
  applications = [];
});

afterEach(async () => {
  await stopProxy(directory);
  for (const child of applications) child.kill('SIGKILL');
  rmSync(directory, { recursive: true });
});

const start = (revision: string, options: Partial<RouterOptions> = {}) =>
  createRouter({ directory, host: '127.0.0.1', port: 0, revision, log: () => undefined, ...options });
const routes = (upstreams: Upstream[]) => [{ host: HOST, protocol: 'HTTP' as const, upstreams }];

async function application(release: string): Promise<Upstream & { child: ChildProcess }> {
  const free = createServer();
  await once(free.listen(0, '127.0.0.1'), 'listening');
  const { port } = free.address() as AddressInfo;
  await new Promise((resolve) => free.close(resolve));
  const child = spawn(process.execPath, ['-e', trafficApplication(release)], {
    env: { PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  applications.push(child);
  await once(child.stdout!, 'data');
  return { address: '127.0.0.1', port, child };
}

async function status(): Promise<ProxyStatus> {
  const answer = await askProxy(directory, { do: 'status' }, 2000);
  return answer.ok ? answer.status! : expect.fail(answer.message);
}

test('another release of the proxy takes over without a failed request, on kept connections and uploads too', async () => {
  const router = await start('a');
  await router.set('s1', 1, routes([await application('r1')]));
  const before = await status();
  const traffic = new Traffic({ port: router.port, host: HOST });
  await traffic.answeredBy('r1', 50);
  for (const revision of ['b', 'c', 'd']) {
    await start(revision);
    await traffic.answeredBy('r1', 100);
  }
  const { sent, answered, failures } = await traffic.stop();
  expect(failures.slice(0, 5)).toEqual([]);
  expect(answered).toEqual({ r1: sent });
  const after = await status();
  expect(after).toMatchObject({ port: before.port, services: 1, config: { revision: 'd' } });
  expect(after.pid).not.toBe(before.pid);
});

test('what the old proxy still has under way ends, then the old proxy ends', async () => {
  const router = await start('a');
  await router.set('s1', 1, routes([await application('r1')]));
  const conversation = await Conversation.open({ port: router.port, host: HOST });
  await start('b');
  expect(await conversation.ask()).toBe('r1');
  expect(controlSockets(readdirSync(directory))).toHaveLength(2);
  expect(readShim(join(directory, 'shim'))!.state.retiring).toHaveLength(1);
  await conversation[Symbol.asyncDispose]();
  await until(
    async () => controlSockets(readdirSync(directory)).length,
    (count) => count === 1,
  );
  await until(
    async () => readShim(join(directory, 'shim'))!.state.retiring,
    (left) => left?.length === 0,
  );
});

test('routes that change meanwhile hold for connections of the old proxy too, and it is waited for', async () => {
  const old = await application('r1');
  const router = await start('a');
  await router.set('s1', 1, routes([old]));
  const conversation = await Conversation.open({ port: router.port, host: HOST });
  const idle = new Traffic({ port: router.port, host: HOST }, { kept: 1 });
  await idle.answeredBy('r1', 1);
  const next = await start('b');
  await next.set('s1', 2, routes([await application('r2')]));
  const asked = performance.now();
  // The websocket in the old proxy counts as under way.
  await next.drained([old], 400);
  expect(performance.now() - asked).toBeGreaterThanOrEqual(399);
  const drained = next.drained([old], 10_000);
  await conversation[Symbol.asyncDispose]();
  await drained;
  old.child.kill('SIGTERM');
  await idle.answeredBy('r2', 5);
  expect((await idle.stop()).failures).toEqual([]);
});

test('after kill -9 new connections wait for the next proxy, and none of them fails', async () => {
  const router = await start('a');
  await router.set('s1', 1, routes([await application('r1')]));
  const traffic = new Traffic({ port: router.port, host: HOST }, { fresh: 8 });
  await traffic.answeredBy('r1', 50);
  const { pid } = await status();
  // Only requests on connections open at that moment may fail.
  const connected = 8;
  process.kill(pid, 'SIGKILL');
  await traffic.answeredBy('r1', 100);
  const { sent, answered, failures } = await traffic.stop();
  expect(failures.length).toBeLessThanOrEqual(connected);
  expect(failures.filter((failure) => !/ECONNRESET|hang up/.test(failure))).toEqual([]);
  expect(answered).toEqual({ r1: sent - failures.length });
  expect((await status()).pid).not.toBe(pid);
  // The control socket of the killed proxy is removed.
  expect(controlSockets(readdirSync(directory))).toHaveLength(1);
});

test('a release that does not start leaves the present proxy serving, and says why', async () => {
  const router = await start('a');
  await router.set('s1', 1, routes([await application('r1')]));
  const { pid } = await status();
  const traffic = new Traffic({ port: router.port, host: HOST }, { kept: 2, fresh: 2 });
  await traffic.answeredBy('r1', 5);
  const failing = replaceProcess(join(directory, 'shim'), {
    command: process.execPath,
    args: ['-e', 'process.exit(7)'],
    env: {},
    ready: 'listening',
    timeoutMs: 5000,
    retire: 'SIGUSR2',
    retireMs: 1000,
  });
  await expect(failing).rejects.toThrow('The new process ended with status 7.');
  await traffic.answeredBy('r1', 20);
  expect((await traffic.stop()).failures).toEqual([]);
  expect((await status()).pid).toBe(pid);
});

test('a websocket of the old proxy is cut off when it has retired for long enough, not before', async () => {
  const retireMs = 1_500;
  const router = await start('a', { retireMs });
  await router.set('s1', 1, routes([await application('r1')]));
  const conversation = await Conversation.open({ port: router.port, host: HOST });
  await start('b', { retireMs });
  const retired = performance.now();
  while (performance.now() - retired < retireMs - 500) expect(await conversation.ask()).toBe('r1');
  expect(await conversation.end()).toBe(1006);
  expect(performance.now() - retired).toBeGreaterThan(retireMs - 500);
  await until(
    async () => readShim(join(directory, 'shim'))!.state.retiring,
    (left) => left?.length === 0,
  );
});

test('no call of gRPC fails while another release of the proxy takes over', async () => {
  const upstream = createHttp2Server();
  const sessions = new Set<{ destroy(): void }>();
  upstream.on('session', (session) => sessions.add(session));
  upstream.on('stream', (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    setTimeout(() => stream.end('answer'), Math.random() * 30);
  });
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  const { port } = upstream.address() as AddressInfo;
  try {
    const router = await start('a');
    const upstreams = [{ address: '127.0.0.1', port }];
    await router.set('s1', 1, [{ host: HOST, protocol: 'GRPC', upstreams }]);
    const calls = startCalls(router.port);
    for (const revision of ['b', 'c']) {
      await calls.more(50);
      await start(revision);
    }
    await calls.more(50);
    const { failures, connections } = await calls.stop();
    expect(failures.slice(0, 5)).toEqual([]);
    // The client reconnected after the GOAWAY of each old proxy.
    expect(connections).toBeGreaterThanOrEqual(3);
  } finally {
    for (const session of sessions) session.destroy();
    upstream.close();
  }
});

/** Makes calls, four at a time, on a connection that it leaves as soon as the other side sends GOAWAY. */
function startCalls(port: number) {
  let session = connectHttp2(`http://127.0.0.1:${port}`);
  let [answered, connections, running] = [0, 1, true];
  const failures: string[] = [];
  const present = () => {
    if (!session.closed && !session.destroyed && !gone.has(session)) return session;
    connections++;
    session = connectHttp2(`http://127.0.0.1:${port}`);
    watch();
    return session;
  };
  const gone = new Set<ClientHttp2Session>();
  const watch = () => {
    const watched = session;
    watched.on('goaway', () => gone.add(watched));
    watched.on('error', (error) => failures.push(`connection: ${error.message}`));
  };
  watch();
  const call = async () => {
    const headers = { ':method': 'POST', ':path': '/a', ':authority': HOST, 'content-type': 'application/grpc' };
    const stream = present().request(headers);
    stream.end('question');
    let trailers: IncomingHttpHeaders = {};
    stream.on('trailers', (received) => (trailers = received));
    const body = await text(stream).catch((error: Error) => {
      // A stream that crossed the GOAWAY is refused unprocessed: clients of gRPC repeat it by themselves.
      if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) return null;
      throw error;
    });
    if (body === null) return;
    if (body !== 'answer' || trailers['grpc-status'] !== '0') throw new Error(`${body} ${JSON.stringify(trailers)}`);
    answered++;
  };
  const line = async () => {
    while (running) await call().catch((error: Error) => failures.push(error.message));
  };
  const lines = Promise.all(Array.from({ length: 4 }, line));
  return {
    more: async (count: number) => {
      const wanted = answered + count;
      await until(
        async () => answered,
        (now) => now >= wanted,
      );
    },
    stop: async () => {
      running = false;
      await lines;
      session.close();
      return { failures, connections };
    },
  };
}
