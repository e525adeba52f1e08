import { randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { newBuild, newContext, newIdentity, writeFixture } from '#runtimes/contract/fixture.ts';
import type { DiskUse } from '#runtimes/runtime.ts';
import { NODE_IMAGE } from '#test/harness/docker-images.ts';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DockerDisk } from './disk-use.ts';
import { makeNode } from './node.ts';
import { openBench, type DockerBench } from './testing.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

let bench: DockerBench;
beforeAll(async () => {
  bench = await openBench(inject('docker').socketPath);
});
afterAll(() => bench[Symbol.asyncDispose]());

const signal = () => AbortSignal.timeout(60_000);
const nowhere = () => new Writable({ write: (_part, _encoding, done) => done() });

/** Meter for an engine whose storage cannot be read. */
function fromAfar(): DockerDisk {
  const { installation, router } = bench;
  const node = makeNode(bench.engine, {
    installation,
    router,
    pool: '10.201.0.0/16',
    egressImage: NODE_IMAGE,
    publishAddress: '127.0.0.1',
    supervise: async () => undefined,
    log: () => undefined,
  });
  return new DockerDisk({ ...node, about: async () => ({ ...(await node.about()), storage: null }) });
}

test('the folder of the storage is told of an engine on this machine, and of no other', async () => {
  const { DockerRootDir } = (await bench.engine.info()) as { DockerRootDir: string };
  expect((await bench.runtime.diskUse!(signal())).storage).toBe(DockerRootDir);
  expect((await fromAfar().measure(signal())).storage).toBeUndefined();
});

test('a sparse file of 100 GiB counts what it occupies, and in full only where the storage of the engine cannot be read', async () => {
  const spec = bench.spec({ storage: [{ id: randomUUID(), mountPath: '/data', sizeGib: 1 }] });
  const handle = await bench.apply(spec);
  const write = `const fs = require('node:fs');
    for (const folder of ['/tmp', '/data']) {
      fs.writeFileSync(folder + '/sparse', Buffer.alloc(5 * ${MIB}, 1));
      fs.truncateSync(folder + '/sparse', 100 * ${GIB});
    }`;
  const request = { command: ['node', '-e', write], environment: {}, stdout: nowhere() };
  expect((await bench.runtime.exec!(handle, request, signal())).exitCode).toBe(0);
  const bytesOf = ({ items }: DiskUse) =>
    (['instance', 'volume'] as const).map((wanted) => {
      const own = items.filter(({ kind, serviceId }) => kind === wanted && serviceId === spec.identity.serviceId);
      expect(own).toMatchObject([{ isWhole: true }]);
      return own[0]!.bytes;
    });
  for (const bytes of bytesOf(await bench.runtime.diskUse!(signal()))) {
    expect(bytes).toBeGreaterThanOrEqual(5 * MIB);
    expect(bytes).toBeLessThan(6 * MIB);
  }
  for (const bytes of bytesOf(await fromAfar().measure(signal()))) expect(bytes).toBeGreaterThanOrEqual(100 * GIB);
});

test('the build cache is trimmed to its limit', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'disk-use-'));
  const identity = newIdentity(bench.installation);
  try {
    await writeFixture(folder, NODE_IMAGE);
    await bench.runtime.build!(newBuild(identity, folder), newContext());
    await bench.runtime.removeImages!(identity, 'all');
    const trim = (buildCacheBytes: number | null) =>
      bench.runtime.trimCaches!({ buildCacheBytes, keptImages: [], pulledSeconds: 0 }, signal());
    const cache = async () => (await bench.runtime.diskUse!(signal())).buildCache;
    const before = await cache();
    await trim(null);
    expect(await cache()).toBe(before);
    const said = await trim(1);
    if (before > 0) expect(said.join()).toContain('build cache');
    expect(await cache()).toBeLessThanOrEqual(before);
    expect(await cache()).toBeLessThan(MIB);
  } finally {
    await rm(folder, { recursive: true });
  }
});
