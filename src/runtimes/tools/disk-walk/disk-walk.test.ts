import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { measureTrees, TreeMeter, type TreeSize } from '#runtimes/tools/disk-walk/index.ts';
import { LEAST_BYTES, walkTree } from '#runtimes/tools/disk-walk/walk.ts';

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'disk-walk-'))));
afterEach(() => execFileSync('rm', ['-rf', '--', folder]));

const MIB = 2 ** 20;
const never = new AbortController().signal;
const measure = async (paths: string[], limits = {}): Promise<TreeSize> =>
  (await measureTrees([{ key: 'it', paths }], never, limits)).get('it')!;

const file = (name: string, bytes: number) => {
  const path = join(folder, name);
  writeFileSync(path, Buffer.alloc(bytes, 1));
  return path;
};

test('a tree takes what its blocks take, as du says it', async () => {
  mkdirSync(join(folder, 'below'));
  file('one', 3 * MIB);
  file('below/two', 5 * MIB);
  const said = Number(execFileSync('du', ['-skx', '--', folder], { encoding: 'utf8' }).split('\t', 1)[0]) * 1024;
  const { bytes, files, isWhole } = await measure([folder]);
  expect({ files, isWhole }).toEqual({ files: 4, isWhole: true });
  expect(Math.abs(bytes - said)).toBeLessThanOrEqual(4 * LEAST_BYTES);
});

test('a sparse file counts what is written of it', async () => {
  file('sparse', MIB);
  truncateSync(join(folder, 'sparse'), 2 ** 40);
  expect((await measure([folder])).bytes).toBeLessThan(2 * MIB);
});

test('a file with many links counts once, and links to folders elsewhere count nothing of them', async () => {
  const one = file('one', 4 * MIB);
  for (let n = 0; n < 50; n++) linkSync(one, join(folder, `link-${n}`));
  symlinkSync('/', join(folder, 'everything'));
  const { bytes } = await measure([folder]);
  expect(bytes).toBeGreaterThanOrEqual(4 * MIB);
  expect(bytes).toBeLessThan(5 * MIB);
});

test('empty files count for the inodes that they take', async () => {
  for (let n = 0; n < 2000; n++) file(`empty-${n}`, 0);
  const { bytes, files } = await measure([folder]);
  expect(files).toBe(2001);
  expect(bytes).toBeGreaterThanOrEqual(2000 * LEAST_BYTES);
});

test.skipIf(process.platform !== 'linux')('folders deeper than any path may be long are seen to the last', async () => {
  const name = 'd'.repeat(200);
  const below = (fd: number) => `/proc/self/fd/${fd}/${name}`;
  let fd = openSync(folder, 'r');
  for (let depth = 0; depth < 500; depth++) {
    mkdirSync(below(fd));
    const next = openSync(below(fd), 'r');
    closeSync(fd);
    fd = next;
  }
  writeFileSync(below(fd), Buffer.alloc(MIB, 1));
  closeSync(fd);
  expect(await measure([folder])).toMatchObject({ files: 502, isWhole: true });
});

test('a tree that takes longer than its time is answered with what was counted, and the next one is measured', async () => {
  mkdirSync(join(folder, 'huge'));
  mkdirSync(join(folder, 'small'));
  for (let n = 0; n < 20_000; n++) file(`huge/${n}`, 0);
  const trees = ['huge', 'small'].map((key) => ({ key, paths: [join(folder, key)] }));
  const sizes = await measureTrees(trees, never, { treeSeconds: 0.01 });
  expect(sizes.get('huge')).toMatchObject({ isWhole: false });
  expect(sizes.get('huge')!.files).toBeGreaterThan(1);
  expect(sizes.get('huge')!.files).toBeLessThan(20_000);
  expect(sizes.get('small')).toMatchObject({ files: 1, isWhole: true });
});

test('a measurement that takes longer than all may ends with what is known, and an aborted one throws', async () => {
  for (let n = 0; n < 5000; n++) file(`${n}`, 0);
  const trees = Array.from({ length: 5000 }, (_, n) => ({ key: `tree ${n}`, paths: [folder] }));
  const sizes = await measureTrees(trees, never, { allSeconds: 1 });
  expect(sizes.size).toBeLessThan(5000);
  await expect(measureTrees(trees, AbortSignal.abort(new Error('enough')))).rejects.toThrow();
});

test('a folder that is moved away while it is walked leads nowhere else, and the rest is counted', () => {
  for (const name of ['a', 'b', 'c']) mkdirSync(join(folder, 'tree', name, 'deep', 'deeper'), { recursive: true });
  mkdirSync(join(folder, 'elsewhere'));
  for (let n = 0; n < 100; n++) file(`elsewhere/${n}`, 0);
  let looks = 0;
  // After the root, the first folder and what lies in it were read.
  const size = walkTree(join(folder, 'tree'), () => {
    if (++looks === 3) for (const name of ['a', 'b', 'c']) moved(name);
    return false;
  });
  function moved(name: string): void {
    mkdirSync(join(folder, 'elsewhere', name));
    renameSync(join(folder, 'tree', name, 'deep'), join(folder, 'elsewhere', name, 'deep'));
  }
  expect(size.isWhole).toBe(false);
  expect(size.files).toBeGreaterThanOrEqual(6);
  expect(size.files).toBeLessThanOrEqual(10);
});

test('what is not there takes nothing, and a single file counts', async () => {
  expect(await measure([join(folder, 'missing')])).toEqual({ bytes: 0, files: 0, isWhole: true });
  expect((await measure([file('one', MIB), file('two', MIB)])).bytes).toBeGreaterThanOrEqual(2 * MIB);
  rmSync(join(folder, 'one'));
});

test('trees that one measurement does not reach keep their figures and come first in the next', async () => {
  const keys = ['one', 'two', 'three'];
  for (const key of keys) mkdirSync(join(folder, key));
  const trees = keys.map((key) => ({ key, paths: [join(folder, key)] }));
  // Each measurement ends after its first tree.
  const meter = new TreeMeter({ prefix: ['sh', '-c', '"$@" | head -n 1', 'sh'] });
  const reached = async () => [...(await meter.measure(trees, never)).keys()];
  expect(await reached()).toEqual(['one']);
  file('one/more', 2 * MIB);
  expect(await reached()).toEqual(['one', 'two']);
  const third = await meter.measure(trees, never);
  expect([...third.keys()]).toEqual(keys);
  expect(third.get('one')!.bytes).toBeLessThan(MIB);
  expect((await meter.measure(trees, never)).get('one')!.bytes).toBeGreaterThan(2 * MIB);
});

test('a tree that a measurement sees in part keeps the larger figure of the one before, and is not told as whole', async () => {
  for (let n = 0; n < 5000; n++) file(`${n}`, 0);
  const limits = { treeSeconds: 60 };
  const meter = new TreeMeter(limits);
  const trees = [{ key: 'it', paths: [folder] }];
  const whole = (await meter.measure(trees, never)).get('it')!;
  expect(whole).toMatchObject({ files: 5001, isWhole: true });
  limits.treeSeconds = 0;
  expect((await meter.measure(trees, never)).get('it')).toEqual({ ...whole, isWhole: false });
});

test('a sparse file of 100 GiB in a hostile tree hides nothing, and the tree is measured in its time', async () => {
  file('sparse', MIB);
  truncateSync(join(folder, 'sparse'), 100 * 2 ** 30);
  // Links in a circle and out of the tree, a pipe that nobody writes to, and names that are no text.
  symlinkSync(folder, join(folder, 'circle'));
  symlinkSync('/proc', join(folder, 'endless'));
  execFileSync('mkfifo', ['--', join(folder, 'pipe')]);
  mkdirSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0xfe])]));
  writeFileSync(
    Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0xfe]), Buffer.from('/in')]),
    Buffer.alloc(3 * MIB, 1),
  );
  const { bytes, files, isWhole } = await measure([folder], { treeSeconds: 20 });
  expect({ files, isWhole }).toEqual({ files: 7, isWhole: true });
  expect(bytes).toBeGreaterThanOrEqual(4 * MIB);
  expect(bytes).toBeLessThan(5 * MIB);
});

test.skipIf(process.getuid?.() === 0)('a folder that may be listed and not entered is not told as whole', async () => {
  mkdirSync(join(folder, 'listed'));
  file('listed/hidden', 3 * MIB);
  chmodSync(join(folder, 'listed'), 0o400);
  try {
    expect(await measure([folder])).toMatchObject({ isWhole: false });
  } finally {
    chmodSync(join(folder, 'listed'), 0o700);
  }
});
