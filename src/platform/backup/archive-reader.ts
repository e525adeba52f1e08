import { createReadStream } from 'node:fs';
import { promisify } from 'node:util';
import { zstdDecompress } from 'node:zlib';
import { extract } from 'tar-stream';
import { sha256 } from '#platform/backup/archive-writer.ts';
import {
  BackupRefused,
  FORMAT,
  MANIFEST_ENTRY,
  MANIFEST_SUM_ENTRY,
  MARK_ENTRY,
  PART_BYTES,
  type Manifest,
  type Mark,
  type Part,
  type TableDump,
} from '#platform/backup/format.ts';

const decompress = promisify(zstdDecompress);

/** Size that no entry of a backup exceeds: a row of the largest value that COPY sends may end a part. */
const MAX_ENTRY_BYTES = 1024 * 1024 * 1024 + PART_BYTES;

interface Entry {
  name: string;
  content: Buffer;
}

const damaged = (file: string, why: string, cause?: unknown) =>
  new BackupRefused(`${file} is damaged (${why}): take another backup.`, cause);

async function* readEntries(file: string): AsyncGenerator<Entry> {
  const tar = extract();
  const source = createReadStream(file);
  source.on('error', (error) => tar.destroy(error));
  source.pipe(tar);
  try {
    for await (const entry of tar) {
      if ((entry.header.size ?? 0) > MAX_ENTRY_BYTES) throw damaged(file, `${entry.header.name} is too large`);
      const chunks: Buffer[] = [];
      for await (const chunk of entry) chunks.push(chunk as Buffer);
      yield { name: entry.header.name, content: Buffer.concat(chunks) };
    }
  } finally {
    source.destroy();
  }
}

/** Reads the entries like `readEntries`, with errors about the file in terms of the user. */
async function* entriesOf(file: string): AsyncGenerator<Entry> {
  try {
    yield* readEntries(file);
  } catch (error) {
    if (error instanceof BackupRefused) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code) throw new BackupRefused(`${file} cannot be read: ${message}`, error);
    if (/^(Unexpected end of data|Invalid tar header)/.test(message)) throw damaged(file, message, error);
    throw error;
  }
}

/**
 * Reads the whole archive and answers its manifest. Refuses what is no backup, has a format that this release does not know, or is
 * not byte for byte what was written.
 */
export async function verifyArchive(file: string): Promise<Manifest> {
  const seen: Part[] = [];
  let manifest: Buffer | undefined;
  let sum: string | undefined;
  let first = true;
  for await (const { name, content } of entriesOf(file)) {
    if (first) refuseOther(file, name, content);
    first = false;
    if (name === MANIFEST_ENTRY) manifest = content;
    else if (name === MANIFEST_SUM_ENTRY) sum = content.toString().trim();
    else if (name !== MARK_ENTRY) seen.push({ name, bytes: content.length, sha256: sha256(content) });
  }
  if (first) throw new BackupRefused(`${file} is no backup of Quarterdeck: it is empty.`);
  if (!manifest || !sum) throw damaged(file, 'its end is missing');
  if (sha256(manifest) !== sum) throw damaged(file, 'the manifest is not what was written');
  const read = JSON.parse(manifest.toString()) as Manifest;
  compare(
    file,
    read.tables.flatMap((table) => table.parts),
    seen,
  );
  return read;
}

/** Refuses a file whose first entry is not a mark of this format. */
function refuseOther(file: string, name: string, content: Buffer): void {
  let mark: Mark | undefined;
  try {
    if (name === MARK_ENTRY) mark = JSON.parse(content.toString()) as Mark;
  } catch (cause) {
    throw damaged(file, 'its first entry is not what was written', cause);
  }
  if (!mark) throw new BackupRefused(`${file} is no backup of Quarterdeck: it does not begin with ${MARK_ENTRY}.`);
  if (mark.format !== FORMAT)
    throw new BackupRefused(
      `${file} has the format ${mark.format}, this release reads ${FORMAT}: restore it with release ${mark.release}.`,
    );
}

function compare(file: string, written: Part[], seen: Part[]): void {
  for (const [index, part] of written.entries()) {
    const found = seen[index];
    if (found?.name !== part.name) throw damaged(file, `${part.name} is missing`);
    if (found.sha256 !== part.sha256) throw damaged(file, `${part.name} is not what was written`);
  }
  if (seen.length > written.length) throw damaged(file, `${seen[written.length]!.name} does not belong to it`);
}

/** Reads the rows of each table in the order of the archive; parts are checked once more as they are read. */
export async function* readRows(file: string, manifest: Manifest): AsyncGenerator<{ table: TableDump; rows: Buffer }> {
  const tables = new Map(manifest.tables.flatMap((table) => table.parts.map((part) => [part.name, { table, part }])));
  for await (const { name, content } of entriesOf(file)) {
    const known = tables.get(name);
    if (!known) continue;
    if (sha256(content) !== known.part.sha256) throw damaged(file, `${name} has changed since it was checked`);
    yield { table: known.table, rows: await decompress(content) };
  }
}
