import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { expect, test } from 'vitest';
import { readPackedFile } from '#resources/helm-repository/archive.ts';
import { packChart } from '#test/harness/registry.ts';

test('a file of a chart is found in its own folder only, not in that of a chart within it', async () => {
  const files = { 'charts/inner/values.yaml': 'inner', 'README.md': 'read me' };
  const archive = await packChart('shop', '1.0.0', { files });
  expect(await readPackedFile(archive, 'README.md')).toBe('read me');
  expect(await readPackedFile(archive, 'values.yaml')).toBe('{}');
  expect(await readPackedFile(archive, 'charts/inner/values.yaml')).toBe('inner');
  expect(await readPackedFile(archive, 'inner/values.yaml')).toBeUndefined();
});

test('a link is no file, wherever it leads', async () => {
  const tar = pack();
  tar.entry({ name: 'shop/values.yaml', type: 'symlink', linkname: '/etc/passwd' });
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar) chunks.push(chunk as Buffer);
  expect(await readPackedFile(gzipSync(Buffer.concat(chunks)), 'values.yaml')).toBeUndefined();
});

test.each([
  ['no archive', Buffer.from('hello')],
  ['cut off', gzipSync(Buffer.alloc(10_000, 1)).subarray(0, 20)],
  ['no tar', gzipSync(Buffer.alloc(10_000, 1))],
])('what is %s is refused', async (_name, archive) => {
  await expect(readPackedFile(archive, 'values.yaml')).rejects.toThrow();
});

test('what becomes much too large when it is unpacked is refused', async () => {
  const half = Buffer.alloc(60 * 1024 * 1024);
  const files = { 'one.bin': half.toString(), 'two.bin': half.toString() };
  const archive = await packChart('shop', '1.0.0', { files });
  expect(archive.length).toBeLessThan(1024 * 1024);
  await expect(readPackedFile(archive, 'missing.yaml')).rejects.toThrow('too large when it is unpacked');
  await expect(readPackedFile(archive, 'one.bin')).rejects.toThrow('larger than 1024 KiB');
});
