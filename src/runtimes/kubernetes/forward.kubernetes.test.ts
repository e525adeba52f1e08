import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { newContext, newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import type { Handle } from '#runtimes/runtime.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';
import { createKubernetesRuntime, type KubernetesRuntime } from './index.ts';
import { openCluster, removeMade } from './testing.ts';

const installation = randomUUID();
const { options, cluster } = openCluster(inject('kubernetes'), installation);
let runtime: KubernetesRuntime;
let handle: Handle;
let instance: string;

beforeAll(async () => {
  runtime = createKubernetesRuntime(options);
  // Port 8080 answers HTTP, port 8081 sends back what it gets; nothing listens on 8082.
  const script =
    'trap "exit 0" TERM; mkdir -p /www; echo ok > /www/healthz; (while true; do nc -l -p 8081 -e cat; done) & httpd -f -p 8080 -h /www & wait';
  const spec = newSpec(newIdentity(installation), BUSYBOX_IMAGE, {
    entrypoint: ['sh', '-c', script],
    storage: [],
    resources: { cpuMilli: 50, memoryMib: 32 },
  });
  handle = await runtime.submit(spec, newContext());
  await runtime.progress!(handle, newContext());
  instance = (await runtime.endpoints!(handle))[0]!.instance;
});
afterAll(async () => {
  await removeMade(cluster);
  await cluster.connection.close();
  await runtime.close();
});

const open = (port: number, signal = new AbortController().signal) =>
  runtime.openPort!(handle, { instance, port }, signal);

test('the ports of a service are those that its instances declare', async () => {
  expect(await runtime.endpoints!(handle)).toEqual([
    { instance, ports: [{ internalPort: 8080, address: expect.stringMatching(/^10\./), port: 8080 }] },
  ]);
});

test('a port of a pod is reached through the API server, and its end is that of the connection', async () => {
  const connection = await open(8080);
  connection.write('GET /healthz HTTP/1.0\r\n\r\n');
  expect(await text(connection)).toMatch(/^HTTP\/1\.. 200 OK\r\n.*\r\n\r\nok\n$/s);
});

test('large data arrive whole and in order in both directions', async () => {
  const connection = await open(8081);
  const sent = Buffer.alloc(3_000_000, 'abcdefghij');
  const parts: Buffer[] = [];
  let bytes = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  connection.on('data', (part: Buffer) => {
    parts.push(part);
    bytes += part.length;
    if (bytes >= sent.length) resolve();
  });
  connection.write(sent);
  await promise;
  expect(Buffer.concat(parts).equals(sent)).toBe(true);
  connection.destroy();
});

test('a port on which nothing listens ends the connection with the reason', async () => {
  const connection = await open(8082);
  const [error] = await once(connection.resume(), 'error');
  expect(String(error)).toMatch(/8082/);
});

test('an instance that is not one of the service is refused', async () => {
  const signal = new AbortController().signal;
  await expect(runtime.openPort!(handle, { instance: 'kube-dns', port: 53 }, signal)).rejects.toMatchObject({
    code: 'failed',
    message: 'No instance kube-dns serves.',
  });
});
