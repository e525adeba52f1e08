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

test('what instances wrote is told by the engine where its storage cannot be read, and sparse files count in full only there', async () => {
  const spec = bench.spec();
  const handle = await bench.apply(spec);
  const write = `const fs = require('node:fs');
    fs.writeFileSync('/tmp/full', Buffer.alloc(5 * ${MIB}, 1));
    fs.writeFileSync('/tmp/sparse', ''); fs.truncateSync('/tmp/sparse', 100 * ${MIB});`;
  const request = { command: ['node', '-e', write], environment: {}, stdout: nowhere() };
  expect((await bench.runtime.exec!(handle, request, signal())).exitCode).toBe(0);
  const bytesOf = ({ items }: DiskUse) =>
    items.find(({ kind, serviceId }) => kind === 'instance' && serviceId === spec.identity.serviceId)!.bytes;
  const own = bytesOf(await bench.runtime.diskUse!(signal()));
  expect(own).toBeGreaterThanOrEqual(5 * MIB);
  expect(own).toBeLessThan(6 * MIB);
  expect(bytesOf(await fromAfar().measure(signal()))).toBeGreaterThanOrEqual(5 * MIB);
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
