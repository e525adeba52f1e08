import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Header } from 'tar-stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { archiveOf, packedOf, type ArchiveEntry } from '#kernel/parsing/archive.fixture.ts';
import { readArchiveOf } from '#kernel/parsing/index.ts';

let folder: string;
let made = 0;
beforeAll(() => void (folder = mkdtempSync(path.join(tmpdir(), 'qd-archive-'))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const LIMITS = { mostBytes: 2 ** 20, mostFiles: 100 };

/** Reads an archive in a thread; returns what it holds, and the stream for git. */
async function read(
  archive: Buffer,
  limits: Partial<typeof LIMITS> = {},
  signal = new AbortController().signal,
  owner = 'organization',
) {
  const file = path.join(folder, `archive-${++made}`);
  const output = path.join(folder, `stream-${made}`);
  writeFileSync(file, archive);
  const options = { output, author: 'Ada <a@b>\nx', seconds: 1_700_000_000, message: 'text', ...LIMITS, ...limits };
  const content = await readArchiveOf(owner, file, options, signal);
  return { ...content, stream: readFileSync(output, 'utf8') };
}

describe('an archive of a folder', () => {
  test('is taken plain and packed, with files, programs, folders and links within it', async () => {
    const entries: ArchiveEntry[] = [
      { name: './', type: 'directory' },
      ['./a.txt', 'text\n'],
      { name: 'bin/', type: 'directory' },
      { name: 'bin/run', mode: 0o755 },
      { name: 'bin/same', type: 'link', linkname: './a.txt' },
      { name: 'bin/up', type: 'symlink', linkname: '../a.txt' },
      { name: 'ä "quoted" \u{1f600}', type: 'symlink', linkname: 'bin/./run' },
    ];
    const plain = await read(await archiveOf(...entries));
    expect(plain).toMatchObject({ files: 5, bytes: 5 });
    expect(plain.stream).toContain('author Ada  a@b  x <> 1700000000 +0000\n');
    expect(plain.stream.split('\n').filter((line) => line.startsWith('M '))).toEqual([
      'M 100644 :1 "a.txt"',
      'M 100755 :2 "bin/run"',
      'M 100644 :1 "bin/same"',
      'M 120000 :3 "bin/up"',
      'M 120000 :4 "ä \\"quoted\\" \u{1f600}"',
    ]);
    expect(await read(await packedOf(...entries))).toEqual(plain);
  });

  test.each<[string, Partial<Header>, RegExp]>([
    ['a link to an absolute path', { name: 'x', type: 'symlink', linkname: '/etc/passwd' }, /"x" leads to "\/etc\/passwd", out of the folder/], // prettier-ignore
    ['a link out of the folder', { name: 'a/x', type: 'symlink', linkname: '../../etc' }, /"a\/x" leads to "..\/..\/etc", out/], // prettier-ignore
    ['a link that climbs behind a name', { name: 'a/x', type: 'symlink', linkname: 'b/../..' }, /"a\/x" has a target with ".." behind/], // prettier-ignore
    ['a link that leads nowhere', { name: 'x', type: 'symlink', linkname: '' }, /leads nowhere|leads out/],
    ['a link in the place of a file of git', { name: 'a/.gitattributes', type: 'symlink', linkname: 'x' }, /".*gitattributes" is read by git/], // prettier-ignore
    ['a hard link to an absolute path', { name: 'x', type: 'link', linkname: '/etc/passwd' }, /hard link "x" leads to "\/etc\/passwd", out/], // prettier-ignore
    [
      'a hard link out of the folder',
      { name: 'x', type: 'link', linkname: 'a/../../b' },
      /hard link "x" leads to .* out/,
    ],
    ['a hard link to what is not there', { name: 'x', type: 'link', linkname: 'gone' }, /hard link "x" leads to "gone", which is no file before/], // prettier-ignore
    ['a link into .git', { name: 'x', type: 'symlink', linkname: 'a/.GIT/hooks' }, /"x" leads to "a\/.GIT\/hooks", which belongs to git/], // prettier-ignore
    ['a link with a backslash', { name: 'x', type: 'symlink', linkname: '..\\x' }, /"x" has a target with a backslash/],
    ['a link with a NUL', { name: 'x', type: 'symlink', pax: { linkpath: 'a\0b' } }, /"x" has a target .* control/],
    ['a hard link with a NUL', { name: 'x', type: 'link', pax: { linkpath: 'a.txt\0' } }, /control characters/],
    ['a hard link to a folder', { name: 'x', type: 'link', linkname: 'a' }, /which is no file before/],
    ['a hard link to itself', { name: 'x', type: 'link', linkname: 'x' }, /which is no file before/],
    ['a hard link below a link', { name: 'link/x', type: 'link', linkname: 'a.txt' }, /needs a folder "link", which is a link/], // prettier-ignore
    ['a hard link to a file below a link', { name: 'x', type: 'link', linkname: 'link/a.txt' }, /which is no file before/], // prettier-ignore
    ['a file in the place of a link', { name: 'link' }, /"link" is there twice/],
    ['a file below a link in another case', { name: 'LINK/x' }, /"link" and "LINK", of which one is a link/],
    ['a link in another case than a file', { name: 'A.TXT', type: 'symlink', linkname: 'x' }, /"a.txt" and "A.TXT"/],
    ['a file of .git as a stream of NTFS', { name: '.git::$INDEX_ALLOCATION/config' }, /belongs to git itself/],
    ['a link to a file of git by a short name', { name: 'GITMOD~1', type: 'symlink', linkname: 'x' }, /is read by git/],
    ['an absolute name', { name: '/etc/x' }, /"\/etc\/x" has an absolute name/],
    ['a name that leads out', { name: 'a/../../x' }, /leads out of the folder/],
    ['a name of ".."', { name: '..', type: 'directory' }, /leads out of the folder/],
    ['a name with an inner dot', { name: 'a/./x' }, /without empty parts/],
    ['a name with a backslash', { name: 'a\\..\\x' }, /backslash/],
    ['a name with a line break', { name: 'a\nb' }, /"a\\nb" has a name with control characters/],
    ['a file of .git', { name: 'a/.git/config' }, /"a\/.git\/config" belongs to git itself/],
    ['a file of .GIT', { name: '.GIT/config' }, /belongs to git itself/],
    ['the short name of .git on Windows', { name: 'git~1/config' }, /belongs to git itself/],
    ['a name that macOS takes for .git', { name: '.g\u200cit/config' }, /belongs to git itself/],
    ['a long name', { name: 'x'.repeat(300) }, /name of more than/],
    ['deep folders', { name: 'a/'.repeat(100) + 'x' }, /nested deeper than 64/],
    ['a device', { name: 'dev', type: 'character-device' }, /"dev" is no file, folder or link, but a device/],
    ['a disk', { name: 'disk', type: 'block-device' }, /"disk" .* a device/],
    ['a pipe', { name: 'pipe', type: 'fifo' }, /"pipe" .* a named pipe/],
    ['a sparse file', { name: 'x', pax: { 'GNU.sparse.major': '1' } }, /"x" is a sparse file/],
    ['a file twice', { name: './a.txt' }, /"a.txt" is there twice/],
    ['a file below a file', { name: 'a.txt/x' }, /"a.txt\/x" needs a folder "a.txt", which is a file/],
    ['a file below a link', { name: 'link/x' }, /"link\/x" needs a folder "link", which is a link/],
    ['a folder in the place of a file', { name: 'a.txt', type: 'directory' }, /which is a file/],
  ])('with %s is refused by name', async (_what, header, message) => {
    const archive = await archiveOf(['a.txt', 'x'], { name: 'link', type: 'symlink', linkname: 'a.txt' }, header);
    await expect(read(archive)).rejects.toThrow(message);
  });

  test('with a hard link to a symbolic link is taken only where the target stays within the folder', async () => {
    const link: Partial<Header> = { name: 'a/b/up', type: 'symlink', linkname: '../../a.txt' };
    const same = await read(
      await archiveOf(['a.txt', 'x'], link, { name: 'c/d/same', type: 'link', linkname: 'a/b/up' }),
    );
    expect(same.stream).toContain('M 120000 :2 "c/d/same"\n');
    for (const [name, message] of [
      ['up', /the link "up" leads to "..\/..\/a.txt", out of the folder/],
      ['a/up', /the link "a\/up" leads to .* out of the folder/],
      ['a/b/.gitattributes', /".*gitattributes" is read by git itself/],
    ] as const)
      await expect(
        read(await archiveOf(['a.txt', 'x'], link, { name, type: 'link', linkname: './a/b/up' })),
      ).rejects.toThrow(message);
    // Also by way of a second hard link.
    const twice: Partial<Header> = { name: 'c/d/same', type: 'link', linkname: 'a/b/up' };
    await expect(
      read(await archiveOf(['a.txt', 'x'], link, twice, { name: 'up', type: 'link', linkname: 'c/d/same' })),
    ).rejects.toThrow(/out of the folder/);
  });

  test('with a name that is not UTF-8, or a NUL in one, is refused', async () => {
    const latin = (await archiveOf(['caf_', 'x'])).toString('latin1');
    await expect(read(withChecksum(latin.replace('caf_', 'caf\u00e9')))).rejects.toThrow(/not UTF-8/);
    await expect(read(await archiveOf({ name: 'x', pax: { path: 'a\0b' } }))).rejects.toThrow(/control characters/);
  });

  test('is refused above the limits of files, folders and bytes', async () => {
    const files = Array.from({ length: 11 }, (_, at): ArchiveEntry => [`${at}`, 'x']);
    await expect(read(await archiveOf(...files), { mostFiles: 10 })).rejects.toThrow('it has more than 10 files');
    const folders = Array.from({ length: 41 }, (_, at): ArchiveEntry => ({ name: `${at}`, type: 'directory' }));
    await expect(read(await archiveOf(...folders), { mostFiles: 10 })).rejects.toThrow('40 folders and files');
    const bomb = await packedOf(['a', 'x'], ['zeros', '\0'.repeat(8 * 2 ** 20)]);
    expect(bomb.length).toBeLessThan(2 ** 20 / 10);
    await expect(read(bomb)).rejects.toThrow('larger than 1 MiB when it is unpacked');
  });

  test('with headers of more than 64 KiB before an entry is refused, wherever they stand', async () => {
    const comment = (kib: number) => archiveOf(['a', 'x'], { name: 'x', pax: { comment: 'y'.repeat(kib * 1024) } });
    expect(await read(await comment(60))).toMatchObject({ files: 2 });
    const large = { mostBytes: 2 ** 30 };
    for (const kib of [65, 4097])
      await expect(read(gzipSync(await comment(kib)), large)).rejects.toThrow('of an entry is larger than 64 KiB');
    // Headers of 32 KiB, each of which a header of the next entry would replace.
    const long = await archiveOf({ name: 'x', pax: { comment: 'y'.repeat(32 * 1024) } });
    const header = long.subarray(0, 512 + Math.ceil((32 * 1024) / 512 + 1) * 512);
    for (const count of [3, 200])
      await expect(read(Buffer.concat([...Array.from({ length: count }, () => header), long]), large)).rejects.toThrow(
        'the header of an entry is larger than 64 KiB',
      );
  });

  test('with zeros behind its end in records of megabytes is taken', async () => {
    const archive = Buffer.concat([await archiveOf(['a', 'x']), Buffer.alloc(3 * 2 ** 20)]);
    expect(await read(archive, { mostBytes: 2 ** 23 })).toMatchObject({ files: 1 });
  });

  test('with a damaged header is refused with its place', async () => {
    await expect(read(await archiveOf(['a', 'x'], { name: 'x', pax: { size: 'many' } }))).rejects.toThrow(
      'archive: the header of the entry after "a" names a size that is no number',
    );
    const archive = await archiveOf(['a', 'x'], ['b', 'x']);
    archive.fill('?', 1024, 1100);
    await expect(read(archive)).rejects.toThrow('archive: the header of the entry after "a" is damaged');
  });

  test('is given up as soon as its request ends, in its thread and before it has one; others go on', async () => {
    const archive = await archiveOf(...Array.from({ length: 5000 }, (_, at): ArchiveEntry => [`${at}`, 'x']));
    const limits = { mostFiles: 10_000 };
    const stop = new AbortController();
    const both = [read(archive, limits, stop.signal), read(archive, limits, stop.signal)];
    const other = read(await archiveOf(['a', 'x']), {}, undefined, 'other organization');
    stop.abort(new Error('the request has ended'));
    for (const one of await Promise.allSettled(both))
      expect(one).toMatchObject({ status: 'rejected', reason: { message: 'the request has ended' } });
    expect(await other).toMatchObject({ files: 1 });
    await expect(read(archive, limits, stop.signal)).rejects.toThrow('the request has ended');
    expect(await read(archive, limits)).toMatchObject({ files: 5000 });
  });

  test('that is empty, not whole, or no archive is refused', async () => {
    const whole = await packedOf(['a', 'x'.repeat(5000)], ['b', Buffer.from([1, 2, 3]).toString('base64')]);
    await expect(read(whole.subarray(0, whole.length / 2))).rejects.toThrow('it is not whole: unexpected end of file');
    const plain = await archiveOf(['a', 'x'.repeat(5000)]);
    // Also between two entries, and wherever else it is cut.
    const packed = gzipSync(await archiveOf(['a', 'x'], ['b', 'y'.repeat(100_000)], ['c', 'z']), { level: 0 });
    for (const at of [600, 1100, 1536, 60_000, packed.length - 1500, packed.length - 9])
      await expect(read(packed.subarray(0, at)), String(at)).rejects.toThrow('it is not whole');
    await expect(read(plain.subarray(0, 2000))).rejects.toThrow('it is not whole: it ends within an entry');
    await expect(read((await archiveOf(['a', 'x'], ['b', 'x'])).subarray(0, 1024))).rejects.toThrow(
      'it is not whole: it ends without the mark of its end',
    );
    await expect(read(await archiveOf())).rejects.toThrow('it has no files');
    await expect(read(Buffer.from('PK\u0003\u0004'.padEnd(2000, 'x')))).rejects.toThrow('it is not a tar archive');
    await expect(read(gzipSync('text'.repeat(1000)))).rejects.toThrow('it is not a tar archive');
    await expect(read(Buffer.from('short'))).rejects.toThrow('it is not');
  });
});

/** Writes the checksum of the first header anew, so that only its name is wrong. */
function withChecksum(archive: string): Buffer {
  const bytes = Buffer.from(archive, 'latin1');
  bytes.fill(' ', 148, 156);
  const sum = bytes.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return bytes;
}
