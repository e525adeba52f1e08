import { existsSync, lstatSync } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { extract, type Header } from 'tar-stream';
import { addEntry, listEntries, packed, type PackedEntry } from '#kernel/pack-folder.ts';
import { shown } from '#kernel/parsing/archive-names.ts';
import type { Settings } from '#platform/settings/index.ts';
import { vaultKeyFile } from '#platform/vault/key.ts';

type Place = Pick<Settings, 'dataDir' | 'vaultKeyFile'>;

/** Files of the data directory that move, besides the key of the vault. Everything else is made anew. */
const SINGLE = ['node-id', 'admin-token', 'audit-heads'];
const BACKUPS = 'backups';
const KEY = 'vault.key';
const STAGED_KEY = 'vault.key.next';
const BACKUP_NAME = /^backups(?:\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/;
/** Names in a data directory that tell of an installation. */
const SIGNS = [...SINGLE, BACKUPS, KEY, STAGED_KEY, 'postgres', 'volumes', 'host', 'images'];

/** Returns where a file of the archive lies in an installation. */
function placeOf(settings: Place, name: string): string {
  if (name === KEY) return vaultKeyFile(settings);
  if (name === STAGED_KEY) return `${vaultKeyFile(settings)}.next`;
  return path.join(settings.dataDir, ...name.split('/'));
}

/** Returns what tells that there is an installation already; empty if there is none. */
export function signsOfInstallation(settings: Place): string[] {
  const inFolder = SIGNS.map((name) => path.join(settings.dataDir, name));
  return [...new Set([...inFolder, vaultKeyFile(settings)])].filter((file) => existsSync(file));
}

async function* listFiles(settings: Place): AsyncGenerator<PackedEntry> {
  for (const name of [KEY, STAGED_KEY, ...SINGLE]) {
    const file = placeOf(settings, name);
    if (existsSync(file)) yield { path: file, name, type: 'file' };
  }
  const backups = path.join(settings.dataDir, BACKUPS);
  if (!existsSync(backups)) return;
  yield { path: backups, name: BACKUPS, type: 'directory' };
  for await (const entry of listEntries(backups)) yield { ...entry, name: `${BACKUPS}/${entry.name}` };
}

/** Streams the files of an installation as a tar archive. */
export const packFiles = (settings: Place): Readable =>
  packed(async (archive) => {
    for await (const entry of listFiles(settings)) {
      refuseFile({ name: entry.name, type: entry.type as Header['type'] });
      await addEntry(archive, entry);
    }
  });

/** Returns the bytes of the files of an installation. */
export async function sizeOfFiles(settings: Place): Promise<number> {
  let bytes = 0;
  for await (const entry of listFiles(settings)) bytes += lstatSync(entry.path).size;
  return bytes;
}

/** Throws Error for an entry that is no file of an installation. */
export function refuseFile({ name, type }: Pick<Header, 'name' | 'type'>): void {
  const isFolder = type === 'directory';
  const plain = isFolder ? name.replace(/\/$/, '') : name;
  const isKnown = isFolder ? BACKUP_NAME.test(plain) : [KEY, STAGED_KEY, ...SINGLE].includes(plain);
  if (!(isFolder || type === 'file') || !(isKnown || BACKUP_NAME.test(plain)))
    throw new Error(`${shown(name)} is no file of an installation`);
}

/** Writes the files into an installation; those that are there are replaced. */
export async function unpackFiles(settings: Place, archive: AsyncIterable<Buffer>): Promise<void> {
  const entries = extract();
  const source = Readable.from(archive);
  source.on('error', (error) => entries.destroy(error));
  source.pipe(entries);
  for await (const entry of entries) {
    const { header } = entry;
    refuseFile(header);
    const target = placeOf(settings, header.name.replace(/\/$/, ''));
    if (header.type === 'directory') {
      await mkdir(target, { recursive: true, mode: 0o700 });
      entry.resume();
      continue;
    }
    await mkdir(path.dirname(target), { recursive: true, mode: 0o700 });
    const mode = (header.mode ?? 0o600) & 0o700;
    await writeContent(`${target}.new`, entry as AsyncIterable<Buffer>, mode);
    await rename(`${target}.new`, target);
  }
}

/** Writes content into a file of this account, in place of what is there, and waits for the disk. */
export async function writeContent(file: string, content: AsyncIterable<Buffer>, mode = 0o600): Promise<void> {
  await rm(file, { force: true });
  const handle = await open(file, 'wx', mode);
  try {
    for await (const chunk of content) await handle.appendFile(chunk);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
