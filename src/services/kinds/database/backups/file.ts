import { createCipheriv, createDecipheriv, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable, Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress, createZstdDecompress } from 'node:zlib';
import { openNew } from '#kernel/private-files.ts';

/** First bytes of a file: a backup in the first format. */
const MARK = Buffer.from('QDB1');
const CHUNK_BYTES = 1 << 20;
const TAG_BYTES = 16;
const HEADER_BYTES = 4 + TAG_BYTES;

/** Identity and key of a backup's file, which each chunk is bound to. */
export interface BackupFile {
  dataDir: string;
  organizationId: string;
  backupId: string;
  /** Key of this file alone: 32 bytes. */
  key: Buffer;
}

type FilePlace = Pick<BackupFile, 'dataDir' | 'organizationId' | 'backupId'>;

export const backupPath = ({ dataDir, organizationId, backupId }: FilePlace): string =>
  path.join(dataDir, 'backups', organizationId, `${backupId}.qdb`);

/** Makes the nonce of a chunk from its number and its being the last. No chunk can be left out, exchanged or cut off. */
function nonceOf(number: number, last: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeBigUInt64BE(BigInt(number));
  nonce[11] = last ? 1 : 0;
  return nonce;
}

function sealChunk({ key, backupId }: BackupFile, number: number, last: boolean, plain: Buffer): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonceOf(number, last));
  cipher.setAAD(Buffer.from(backupId));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  const header = Buffer.alloc(4);
  header.writeUInt32BE(body.length);
  return Buffer.concat([header, cipher.getAuthTag(), body]);
}

/** Encrypts in chunks; the nonce of the last chunk marks it as the last one. */
async function* seal(file: BackupFile, source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield MARK;
  let pending: Buffer[] = [];
  let size = 0;
  let number = 0;
  for await (const part of source) {
    pending.push(part);
    size += part.length;
    while (size > CHUNK_BYTES) {
      const all = Buffer.concat(pending);
      yield sealChunk(file, number++, false, all.subarray(0, CHUNK_BYTES));
      pending = [all.subarray(CHUNK_BYTES)];
      size -= CHUNK_BYTES;
    }
  }
  yield sealChunk(file, number, true, Buffer.concat(pending));
}

/** Decrypts. Throws if a chunk is another file's, changed or missing; no data of such a chunk is returned. */
async function* unseal({ key, backupId }: BackupFile, source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let pending: Buffer = Buffer.alloc(0);
  let number = 0;
  let begun = false;
  let ended = false;
  for await (const part of source) {
    pending = pending.length === 0 ? part : Buffer.concat([pending, part]);
    if (!begun && pending.length >= MARK.length) {
      if (!pending.subarray(0, MARK.length).equals(MARK)) throw new Error('The file is no backup of a database.');
      pending = pending.subarray(MARK.length);
      begun = true;
    }
    while (begun && pending.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + pending.readUInt32BE(0);
      if (pending.length < end) break;
      if (ended) throw new Error('The file of the backup goes on behind its end.');
      const body = pending.subarray(HEADER_BYTES, end);
      const tag = pending.subarray(4, HEADER_BYTES);
      const opened = openChunk(key, backupId, number++, tag, body);
      ended = opened.last;
      yield opened.plain;
      pending = pending.subarray(end);
    }
  }
  if (!ended || pending.length > 0) throw new Error('The file of the backup is cut off.');
}

function openChunk(key: Buffer, backupId: string, number: number, tag: Buffer, body: Buffer) {
  for (const last of [false, true]) {
    const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(number, last));
    decipher.setAAD(Buffer.from(backupId));
    decipher.setAuthTag(tag);
    const plain = decipher.update(body);
    try {
      return { plain: Buffer.concat([plain, decipher.final()]), last };
    } catch (cause) {
      // The nonce depends on being the last chunk: only if neither fits, the chunk was changed.
      if (last) throw new Error('The file of the backup was changed, or its key is another.', { cause });
    }
  }
  throw new Error('Not reached.');
}

/** Removes the unfinished files of a backup. An attempt that still writes one can then no longer rename it to the final name. */
async function removeUnfinished(target: string): Promise<void> {
  const folder = path.dirname(target);
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  for (const name of names)
    if (name.startsWith(path.basename(target)) && name.endsWith('.making'))
      await rm(path.join(folder, name), { force: true });
}

/**
 * Writes the output of `fill`, compressed and encrypted. The file gets its final name when it is complete and flushed to the disk. Each
 * attempt has an unfinished file of its own, and removes those of the attempts before it.
 */
export async function writeBackup(
  file: BackupFile,
  fill: (to: Writable) => Promise<void>,
): Promise<{ bytes: number; storedBytes: number }> {
  const target = backupPath(file);
  const making = `${target}.${randomUUID()}.making`;
  await mkdir(path.dirname(target), { recursive: true, mode: 0o700 });
  await removeUnfinished(target);
  let bytes = 0;
  const counted = new Transform({
    transform: (part: Buffer, _encoding, done) => {
      bytes += part.length;
      done(null, part);
    },
  });
  try {
    const written = pipeline(
      counted,
      createZstdCompress(),
      (source: AsyncIterable<Buffer>) => seal(file, source),
      openNew(making),
    );
    const filled = fill(counted).then(
      () => counted.end(),
      (error: Error) => {
        counted.destroy(error);
        throw error;
      },
    );
    await settle([filled, written]);
    const handle = await open(making, 'r+');
    await handle.sync();
    await handle.close();
    await rename(making, target);
  } catch (error) {
    await rm(making, { force: true });
    throw error;
  }
  return { bytes, storedBytes: (await stat(target)).size };
}

/** Waits for all promises, then throws the first error. */
async function settle(work: Promise<unknown>[]): Promise<void> {
  await Promise.allSettled(work);
  await Promise.all(work);
}

/** Returns the content of a backup, decrypted and decompressed. The stream's error says what is wrong with the file. */
export function readBackup(file: BackupFile): Readable {
  const opened = Readable.from(unseal(file, createReadStream(backupPath(file))), { objectMode: false });
  const plain = createZstdDecompress();
  pipeline(opened, plain).catch((error: Error) => plain.destroy(error));
  return plain;
}

/** Reads the whole file and discards its content; throws unless the file is complete. */
export const verifyBackup = (file: BackupFile): Promise<void> =>
  pipeline(readBackup(file), new Writable({ write: (_part, _encoding, done) => done() }));

/** Removes the file and unfinished files of it, if they exist. `withFolder`: also removes the folder of the organization if it is empty. */
export async function removeBackup(file: FilePlace, withFolder: boolean): Promise<void> {
  await rm(backupPath(file), { force: true });
  await removeUnfinished(backupPath(file));
  if (withFolder) await removeIfEmpty(path.dirname(backupPath(file)));
}

async function removeIfEmpty(folder: string): Promise<void> {
  try {
    await rmdir(folder);
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
