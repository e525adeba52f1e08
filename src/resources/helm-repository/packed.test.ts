import { gzipSync } from 'node:zlib';
import { pack, type Header } from 'tar-stream';
import { expect, test } from 'vitest';
import { checkArchive } from '#resources/helm-repository/archive.ts';

async function archiveOf(...entries: Partial<Header>[]): Promise<Buffer> {
  const archive = pack();
  for (const header of entries) archive.entry({ name: 'web/Chart.yaml', ...header }, '');
  archive.finalize();
  const parts: Buffer[] = [];
  for await (const part of archive) parts.push(part as Buffer);
  return gzipSync(Buffer.concat(parts));
}

test('an archive of files and folders is taken', async () => {
  await checkArchive(await archiveOf({}, { name: 'web/templates', type: 'directory' }, { name: './web/a.yaml' }));
});

test.each<[Partial<Header>, RegExp]>([
  [{ name: 'web/link', type: 'symlink', linkname: '/etc/passwd' }, /is a symlink/],
  [{ name: 'web/link', type: 'link', linkname: 'web/Chart.yaml' }, /is a link/],
  [{ name: 'web/pipe', type: 'fifo' }, /is a fifo/],
  [{ name: '../outside' }, /leads out of the chart/],
  [{ name: 'web/../../outside' }, /leads out of the chart/],
  [{ name: '/etc/passwd' }, /leads out of the chart/],
  [{ name: 'web\\..\\outside' }, /leads out of the chart/],
])('an archive with %j is refused', async (header, message) => {
  await expect(checkArchive(await archiveOf({}, header))).rejects.toThrow(message);
});
