import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { zstdDecompress } from 'node:zlib';
import { extract } from 'tar-stream';
import { sha256, type Change } from '#platform/backup/archive-writer.ts';
import {
  BACKUP,
  BackupRefused,
  MANIFEST_ENTRY,
  MANIFEST_SUM_ENTRY,
  type ArchiveKind,
  type Manifest,
  type Mark,
  type Part,
  type TableDump,
} from '#platform/backup/format.ts';

const decompress = promisify(zstdDecompress);

interface Entry {
  name: string;
  content: Buffer;
}

/** File of an archive. `change` decrypts it; its errors are refusals for people. */
export interface ArchiveFile<M extends Mark> {
  file: string;
  kind: ArchiveKind<M>;
  change?: Change | undefined;
}

const damaged = ({ file, kind }: ArchiveFile<never>, why: string, cause?: unknown) =>
  new BackupRefused(`${file} is damaged (${why}): ${kind.again}.`, cause);

async function* readEntries(archive: ArchiveFile<never>): AsyncGenerator<Entry> {
  const { file, kind, change } = archive;
  const tar = extract();
  const source = createReadStream(file);
  const stop = (error: Error) => tar.destroy(error);
  source.on('error', stop);
  try {
    const bytes = change ? Readable.fromWeb((await change(Readable.toWeb(source) as never)) as never) : source;
    bytes.on('error', stop);
    bytes.pipe(tar);
    for await (const entry of tar) {
      if ((entry.header.size ?? 0) > kind.mostEntryBytes) throw damaged(archive, `${entry.header.name} is too large`);
      const chunks: Buffer[] = [];
      for await (const chunk of entry) chunks.push(chunk as Buffer);
      yield { name: entry.header.name, content: Buffer.concat(chunks) };
    }
  } finally {
    source.destroy();
  }
}

/** Reads the entries like `readEntries`, with errors about the file in terms of the user. */
async function* entriesOf(archive: ArchiveFile<never>): AsyncGenerator<Entry> {
  try {
    yield* readEntries(archive);
  } catch (error) {
    if (error instanceof BackupRefused) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code) throw new BackupRefused(`${archive.file} cannot be read: ${message}`, error);
    if (/^(Unexpected end of data|Invalid tar header)/.test(message)) throw damaged(archive, message, error);
    throw error;
  }
}

/**
 * Reads the whole archive and answers its manifest. Refuses what is no archive of the kind, has a format that this release does not know,
 * or is not byte for byte what was written. `look` gets each part, decompressed, before the manifest is known.
 */
export async function verify<M extends Mark>(
  archive: ArchiveFile<M>,
  look?: (name: string, content: Buffer) => Promise<void>,
): Promise<M> {
  const { kind } = archive;
  const seen: Part[] = [];
  let manifest: Buffer | undefined;
  let sum: string | undefined;
  let first = true;
  for await (const { name, content } of entriesOf(archive)) {
    if (first) refuseOther(archive, name, content);
    first = false;
    if (name === MANIFEST_ENTRY) manifest = content;
    else if (name === MANIFEST_SUM_ENTRY) sum = content.toString().trim();
    else if (name !== kind.markEntry) {
      seen.push({ name, bytes: content.length, sha256: sha256(content) });
      if (look) await look(name, await decompressed(archive, name, content));
    }
  }
  if (first) throw new BackupRefused(`${archive.file} is no ${kind.name}: it is empty.`);
  if (!manifest || !sum) throw damaged(archive, 'its end is missing');
  if (sha256(manifest) !== sum) throw damaged(archive, 'the manifest is not what was written');
  const read = JSON.parse(manifest.toString()) as M;
  compare(archive, kind.partsOf(read), seen);
  return read;
}

/** Reads and verifies a backup of the database (`verify`). */
export const verifyArchive = (file: string): Promise<Manifest> => verify({ file, kind: BACKUP });

async function decompressed(archive: ArchiveFile<never>, name: string, content: Buffer): Promise<Buffer> {
  try {
    return await decompress(content, { maxOutputLength: archive.kind.mostPartBytes });
  } catch (cause) {
    throw damaged(archive, `${name} cannot be decompressed`, cause);
  }
}

/** Refuses a file whose first entry is not a mark of this format. */
function refuseOther(archive: ArchiveFile<never>, name: string, content: Buffer): void {
  const { file, kind } = archive;
  let mark: Mark | undefined;
  try {
    if (name === kind.markEntry) mark = JSON.parse(content.toString()) as Mark;
  } catch (cause) {
    throw damaged(archive, 'its first entry is not what was written', cause);
  }
  if (!mark) throw new BackupRefused(`${file} is no ${kind.name}: it does not begin with ${kind.markEntry}.`);
  if (mark.format !== kind.format)
    throw new BackupRefused(
      `${file} has the format ${mark.format}, this release reads ${kind.format}: restore it with release ${mark.release}.`,
    );
}

function compare(archive: ArchiveFile<never>, written: Part[], seen: Part[]): void {
  for (const [index, part] of written.entries()) {
    const found = seen[index];
    if (found?.name !== part.name) throw damaged(archive, `${part.name} is missing`);
    if (found.sha256 !== part.sha256) throw damaged(archive, `${part.name} is not what was written`);
  }
  if (seen.length > written.length) throw damaged(archive, `${seen[written.length]!.name} does not belong to it`);
}

/** Reads the parts in the order of the archive, decompressed; each is checked once more as it is read. */
export async function* readParts<M extends Mark>(archive: ArchiveFile<M>, manifest: M): AsyncGenerator<Entry> {
  const parts = new Map(archive.kind.partsOf(manifest).map((part) => [part.name, part]));
  let left = parts.size;
  for await (const { name, content } of entriesOf(archive)) {
    const known = parts.get(name);
    if (!known) continue;
    if (sha256(content) !== known.sha256) throw damaged(archive, `${name} has changed since it was checked`);
    left--;
    yield { name, content: await decompressed(archive, name, content) };
  }
  if (left > 0) throw damaged(archive, 'it has changed since it was checked');
}

/** Reads the rows of each table in the order of the archive. */
export async function* readRows(file: string, manifest: Manifest): AsyncGenerator<{ table: TableDump; rows: Buffer }> {
  const tables = new Map(manifest.tables.flatMap((table) => table.parts.map(({ name }) => [name, table])));
  for await (const { name, content } of readParts({ file, kind: BACKUP }, manifest))
    yield { table: tables.get(name)!, rows: content };
}
