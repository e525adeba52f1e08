import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { extract, pack, type Header } from 'tar-stream';
import { afterAll, describe, expect, test } from 'vitest';
import type { Manifest } from '#platform/backup/format.ts';
import { packInstallation, verifyInstallation, type PackOptions } from '#platform/move/archive.ts';
import { requireSpace } from '#platform/move/disk-space.ts';
import { unpackFiles } from '#platform/move/files.ts';
import { FILES, MOVE } from '#platform/move/format.ts';
import { readPassphrase } from '#platform/move/passphrase.ts';

const home = mkdtempSync(path.join(tmpdir(), 'qd-archive-'));
afterAll(() => rmSync(home, { recursive: true }));

const dataDir = path.join(home, 'data');
mkdirSync(path.join(dataDir, 'backups', 'organization'), { recursive: true });
writeFileSync(path.join(dataDir, 'vault.key'), 'the key\n', { mode: 0o600 });
writeFileSync(path.join(dataDir, 'node-id'), 'the node\n');
writeFileSync(path.join(dataDir, 'backups', 'organization', 'one.qdb'), 'a backup');
writeFileSync(path.join(dataDir, 'left-out'), 'x');
const backup = path.join(home, 'backup');
writeFileSync(backup, 'the database');

let made = 0;
const newFile = () => path.join(home, `${++made}.move`);

async function* tarOf(entries: (Partial<Header> & { content?: string })[]): AsyncGenerator<Buffer> {
  const tar = pack();
  for (const { content, ...header } of entries) tar.entry({ name: 'x', ...header } as Header, content ?? '');
  tar.finalize();
  for await (const chunk of tar) yield chunk as Buffer;
}

const PLAIN = [
  { name: './', type: 'directory' as const },
  { name: './kept', content: 'content' },
  { name: './link', type: 'symlink' as const, linkname: '/etc/passwd' },
  { name: './same', type: 'link' as const, linkname: './kept' },
];

async function write(file: string, entries = PLAIN as Parameters<typeof tarOf>[0], changes: Partial<PackOptions> = {}) {
  const settings = { dataDir, vaultKeyFile: '' };
  const facts = { takenAt: '2026-11-28T00:00:00.000Z', release: '1', migrations: [], installation: { id: 'i' } };
  return packInstallation(file, {
    id: 'archive',
    settings,
    backup: { file: backup, manifest: facts as unknown as Manifest, diskBytes: 1 },
    volumes: [{ runtime: 'host', id: 'volume', serviceId: 's', labels: {}, read: () => tarOf(entries) }],
    passphrase: undefined,
    progress: () => undefined,
    whole: async () => undefined,
    ...changes,
  });
}

test('an archive holds database, key, backups and volumes, and nothing else of the data directory', async () => {
  const file = newFile();
  const written = await write(file);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const { manifest, read } = await verifyInstallation(file, undefined);
  expect(manifest).toEqual(written);
  const fresh = path.join(home, 'fresh');
  const contents = new Map<string, string>();
  await read(async (folder, content) => {
    if (folder === FILES) return unpackFiles({ dataDir: fresh, vaultKeyFile: path.join(home, 'other.key') }, content);
    const chunks: Buffer[] = [];
    for await (const chunk of content) chunks.push(chunk);
    contents.set(folder, String(Buffer.concat(chunks)));
  });
  expect([...contents.keys()]).toEqual(['database', 'volumes/host/volume']);
  expect(contents.get('database')).toBe('the database');
  expect(readdirSync(fresh, { recursive: true, encoding: 'utf8' }).toSorted()).toEqual([
    'backups',
    'backups/organization',
    'backups/organization/one.qdb',
    'node-id',
  ]);
  expect(readFileSync(path.join(home, 'other.key'), 'utf8')).toBe('the key\n');
  expect(statSync(path.join(home, 'other.key')).mode & 0o777).toBe(0o600);
});

test('an encrypted archive shows nothing of the key and is read with its passphrase only', async () => {
  const [file, passphrase] = [newFile(), 'correct horse battery'];
  await write(file, PLAIN, { passphrase });
  expect(readFileSync(file).includes('quarterdeck-move.json')).toBe(false);
  expect((await verifyInstallation(file, passphrase)).manifest.id).toBe('archive');
  await expect(verifyInstallation(file, undefined)).rejects.toThrow('is encrypted: name the file with its passphrase');
  await expect(verifyInstallation(file, 'another passphrase')).rejects.toThrow('cannot be decrypted');
  truncateSync(file, statSync(file).size - 30);
  await expect(verifyInstallation(file, passphrase)).rejects.toThrow('cannot be decrypted');
  const plain = newFile();
  await write(plain);
  await expect(verifyInstallation(plain, passphrase)).rejects.toThrow('is not encrypted');
  writeFileSync(path.join(home, 'short'), 'secret\n');
  expect(() => readPassphrase(path.join(home, 'short'))).toThrow('must have 16 characters or more');
});

test('an archive that was changed or cut off is refused', async () => {
  const file = newFile();
  await write(file);
  const content = readFileSync(file);
  const damaged = newFile();
  for (let at = 700; at < content.length; at += 1024) {
    const changed = Buffer.from(content);
    changed[at]! ^= 1;
    writeFileSync(damaged, changed);
    // Bytes that fill up a block mean nothing.
    const isPadding = content[at] === 0 && content[at - 1] === 0;
    if (!isPadding) await expect(verifyInstallation(damaged, undefined), `byte ${at}`).rejects.toThrow(damaged);
  }
  writeFileSync(damaged, content.subarray(0, content.length / 2));
  await expect(verifyInstallation(damaged, undefined)).rejects.toThrow(/is damaged|cannot be read/);
  writeFileSync(damaged, 'something else');
  await expect(verifyInstallation(damaged, undefined)).rejects.toThrow(damaged);
});

describe('a volume', () => {
  const refused: [string, Parameters<typeof tarOf>[0], string][] = [
    ['with an absolute name', [{ name: '/etc/cron.d/x', content: 'x' }], 'leads out of it'],
    ['with a name that leads out', [{ name: './a/../../x', content: 'x' }], 'leads out of it'],
    ['with a hard link to a file outside', [{ name: 'x', type: 'link', linkname: '../../y' }], 'leads out of it'],
    [
      'with a file behind one of its links',
      [
        { name: './a', type: 'symlink', linkname: '/etc' },
        { name: './a/passwd', content: 'x' },
      ],
      'leads through the link',
    ],
    ['with a device', [{ name: 'disk', type: 'block-device', devmajor: 8, devminor: 0 } as never], 'remove it'],
    ['with a sparse file of another name', [{ name: 'x', pax: { 'GNU.sparse.name': '../x' } } as never], 'leads out'],
  ];
  test.each(refused)('%s is not packed, and leaves no file', async (_name, entries, why) => {
    const file = newFile();
    await expect(write(file, entries)).rejects.toThrow(why);
    expect(readdirSync(home).filter((name) => name.startsWith(path.basename(file)))).toEqual([]);
  });

  test.each(refused)('%s is not unpacked from an archive that others made', async (_name, entries, why) => {
    const good = newFile();
    await write(good);
    const hostile = newFile();
    await replaceVolume(good, hostile, entries);
    await expect(verifyInstallation(hostile, undefined)).rejects.toThrow(why);
  });
});

/** Writes an archive again with another content of its volume, and sums that fit. */
async function replaceVolume(good: string, hostile: string, entries: Parameters<typeof tarOf>[0]): Promise<void> {
  const { zstdCompressSync } = await import('node:zlib');
  const chunks: Buffer[] = [];
  for await (const chunk of tarOf(entries)) chunks.push(chunk);
  const content = zstdCompressSync(Buffer.concat(chunks));
  const sum = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');
  const [read, written] = [extract(), pack()];
  read.end(readFileSync(good));
  let manifest = '';
  for await (const entry of read) {
    const { name } = entry.header;
    const parts: Buffer[] = [];
    for await (const part of entry) parts.push(part as Buffer);
    let own: Buffer | string = Buffer.concat(parts);
    if (name.startsWith('volumes/')) own = content;
    if (name === 'manifest.json') {
      const known = MOVE.partsOf(JSON.parse(String(own))).find((part) => part.name.startsWith('volumes/'))!;
      own = manifest = String(own).replace(known.sha256, sum(content));
    }
    if (name === 'manifest.sha256') own = `${sum(manifest)}\n`;
    written.entry({ name }, own);
  }
  written.finalize();
  const all: Buffer[] = [];
  for await (const chunk of written) all.push(chunk as Buffer);
  writeFileSync(hostile, Buffer.concat(all));
}

test('an archive with files that are none of an installation is refused', async () => {
  const { refuseFile } = await import('#platform/move/files.ts');
  for (const name of ['postgres/data', '../vault.key', 'backups/../x', '/etc/passwd', 'proxy', 'backups/.hidden'])
    expect(() => refuseFile({ name, type: 'file' }), name).toThrow('is no file of an installation');
  expect(() => refuseFile({ name: 'vault.key', type: 'symlink' })).toThrow('is no file of an installation');
  expect(() => refuseFile({ name: 'backups/a/b.qdb', type: 'file' })).not.toThrow();
});

test('a packing whose last step fails gives the archive no name', async () => {
  const file = newFile();
  const whole = () => Promise.reject(new Error('the service was started'));
  await expect(write(file, PLAIN, { whole })).rejects.toThrow('the service was started');
  expect(existsSync(file)).toBe(false);
});

test('a disk without the room is named with what it has and what is needed', async () => {
  await expect(requireSpace([{ folder: path.join(home, 'not', 'there'), bytes: 1e18 }])).rejects.toThrow(
    /^The disk of .* has \d+ MB free, and up to 1000000000000 MB are needed/,
  );
  await requireSpace([{ folder: home, bytes: 1 }]);
});
