import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commandLines } from '#runtimes/host/testing.ts';
import { probeOnce } from '#runtimes/tools/shim/probe.ts';

/** Servers of an instance, and of another program that its check must not reach. */
let instance: Server;
let other: Server;
const asked: string[] = [];
let others = 0;
beforeAll(async () => {
  instance = createServer((request, response) => {
    asked.push(request.url!);
    response.end();
  });
  other = createServer((_request, response) => void response.end());
  other.on('connection', () => others++);
  await new Promise<void>((resolve) => instance.listen(0, '127.0.0.1', resolve));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.2', resolve));
});
afterAll(() => {
  instance.close();
  other.close();
});

const portOf = (server: Server) => (server.address() as AddressInfo).port;
const TARGET = { address: '127.0.0.1', ports: {}, wrap: [], env: {}, cwd: '/' };
const PIDS = { wrapper: 0, init: 0, process: 0 };

describe('a check goes to the instance, whatever it says', () => {
  test.each([
    (port: number) => `//127.0.0.2:${port}/metadata`,
    (port: number) => `/\\127.0.0.2:${port}/`,
    (port: number) => `\\\\127.0.0.2:${port}/`,
    (port: number) => `http://127.0.0.2:${port}/`,
    (port: number) => `@127.0.0.2:${port}/`,
    (port: number) => `:${port}@127.0.0.2/`,
    () => '//[',
    () => '/a b\r\nX-Injected: 1',
  ])('over HTTP, path %#', async (pathTo) => {
    const check = { type: 'http', port: portOf(instance), path: pathTo(portOf(other)), scheme: 'HTTP' } as const;
    asked.length = 0;
    expect(await probeOnce(check, TARGET, 2000, PIDS)).toBeNull();
    expect([asked.length, others]).toEqual([1, 0]);
  });

  test('over TCP', async () => {
    const check = { type: 'tcp', port: portOf(other), host: '127.0.0.2' } as const;
    expect(await probeOnce(check, TARGET, 2000, PIDS)).toContain('ECONNREFUSED');
    expect(others).toBe(0);
  });
});

test('through a forwarder a TCP check waits until somebody takes the connection', async () => {
  const taken: ((socket: Socket) => unknown)[] = [];
  const forwarder = createTcpServer((socket) => taken.shift()!(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => forwarder.listen(0, '127.0.0.1', resolve));
  const { port } = forwarder.address() as AddressInfo;
  const check = { type: 'tcp', port, host: null } as const;
  const ask = (take: (socket: Socket) => unknown) => {
    taken.push(take);
    return probeOnce(check, { ...TARGET, forwarded: true }, 2000, PIDS);
  };
  const refused = `port ${port} ended the connection at once`;
  expect(await ask((socket) => socket.end())).toBe(refused);
  expect(await ask((socket) => socket.resetAndDestroy())).toMatch(/ECONNRESET|at once/);
  expect(await ask((socket) => socket.end('220 ready\r\n'))).toBeNull();
  expect(await ask(() => undefined)).toBeNull();
  await new Promise((resolve) => forwarder.close(resolve));
});

test.skipIf(process.platform !== 'linux')(
  'a command that does not end in time fails and is ended with what it started',
  async () => {
    const length = `1000.${randomInt(1e9)}`;
    const command = ['sh', '-c', `sleep ${length} & setsid sleep ${length} & wait`];
    const target = { ...TARGET, env: { PATH: '/usr/bin:/bin' } };
    expect(await probeOnce({ type: 'exec', command }, target, 500, PIDS)).toBe('sh did not end within 500 ms');
    await expect.poll(() => commandLines().filter((line) => line.includes(length))).toEqual([]);
  },
);
