import { randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { newContext } from '#runtimes/contract/fixture.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';
import { volumeName } from './labels.ts';
import { leftoversOf, openBench, type DockerBench } from './testing.ts';

let bench: DockerBench;
beforeAll(async () => {
  bench = await openBench(inject('docker').socketPath);
});
afterAll(() => bench[Symbol.asyncDispose]());

const signal = () => AbortSignal.timeout(60_000);
const storage = () => [{ id: randomUUID(), mountPath: '/data', sizeGib: 1 }];
const volumes = () => bench.runtime.volumes!;

async function run(spec: WorkloadSpec, script: string): Promise<string> {
  const parts: Buffer[] = [];
  const stdout = new Writable({ write: (part: Buffer, _encoding, done) => (parts.push(part), done()) });
  const handle = { format: 1, runtime: 'docker' as const, identity: spec.identity, data: {} };
  const request = { command: ['node', '-e', script], environment: {}, stdout };
  expect((await bench.runtime.exec!(handle, request, signal())).exitCode).toBe(0);
  return String(Buffer.concat(parts));
}

async function* emitted(chunks: Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks;
}

test('the content of a volume is read and written into a new one with owners, modes, times and links', async () => {
  const spec = bench.spec({ storage: storage() });
  await bench.apply(spec);
  await run(
    spec,
    `const fs = require('node:fs');
    fs.mkdirSync('/data/folder', { mode: 0o750 });
    fs.writeFileSync('/data/folder/kept', 'x'.repeat(9_000_000), { mode: 0o600 });
    fs.chownSync('/data/folder/kept', 1234, 2345);
    fs.utimesSync('/data/folder/kept', 1e9, 1e9);
    fs.linkSync('/data/folder/kept', '/data/same');
    fs.symlinkSync('/etc/passwd', '/data/link');
    fs.chownSync('/data', 77, 78);
    fs.chmodSync('/data', 0o711);`,
  );
  await bench.runtime.stop(spec.identity, null, newContext());
  const [volume, ...others] = await volumes().list();
  expect(others).toEqual([]);
  expect(volume).toMatchObject({ id: spec.storage[0]!.id, serviceId: spec.identity.serviceId });
  const chunks: Buffer[] = [];
  for await (const chunk of volumes().read(volume!, signal())) chunks.push(chunk);

  await bench.runtime.remove(spec.identity, null, newContext());
  expect(await leftoversOf(bench.engine, spec.identity)).toEqual([]);
  await volumes().write(volume!, emitted(chunks), signal());
  // What was broken off is replaced.
  await volumes().write(volume!, emitted(chunks), signal());
  expect(await bench.containers(spec)).toEqual([]);
  await bench.apply(spec);
  const look = `const fs = require('node:fs');
    const of = (name) => { const s = fs.lstatSync(name); return [s.uid, s.gid, (s.mode & 0o7777).toString(8), s.size]; };
    console.log(JSON.stringify({ root: of('/data').slice(0, 3), folder: of('/data/folder')[2], kept: of('/data/folder/kept'),
      time: fs.statSync('/data/folder/kept').mtimeMs, same: fs.statSync('/data/same').ino === fs.statSync('/data/folder/kept').ino,
      link: fs.readlinkSync('/data/link') }));`;
  expect(JSON.parse(await run(spec, look))).toEqual({
    root: [77, 78, '711'],
    folder: '750',
    kept: [1234, 2345, '600', 9_000_000],
    time: 1e12,
    same: true,
    link: '/etc/passwd',
  });
});

test('a volume of another installation is neither listed nor overwritten', async () => {
  const spec = bench.spec({ storage: storage() });
  await bench.apply(spec);
  await bench.runtime.stop(spec.identity, null, newContext());
  const [volume] = await volumes().list();
  const other = await openBench(inject('docker').socketPath);
  expect(await other.runtime.volumes!.list()).toEqual([]);
  await expect(other.runtime.volumes!.write(volume!, emitted([]), signal())).rejects.toThrow(
    'belongs to another installation',
  );
  const id = randomUUID();
  await bench.engine.createVolume({ Name: volumeName(id), Labels: {} });
  await expect(volumes().write({ ...volume!, id }, emitted([]), signal())).rejects.toThrow(
    'does not belong to this installation',
  );
  await bench.engine.getVolume(volumeName(id)).remove();
  await other[Symbol.asyncDispose]();
});
