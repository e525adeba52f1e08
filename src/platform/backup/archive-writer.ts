import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { zstdCompress } from 'node:zlib';
import { pack, type Pack } from 'tar-stream';
import { openNew } from '#kernel/private-files.ts';
import {
  BackupRefused,
  MANIFEST_ENTRY,
  MANIFEST_SUM_ENTRY,
  PART_BYTES,
  type ArchiveKind,
  type Mark,
  type Part,
} from '#platform/backup/format.ts';

const compress = promisify(zstdCompress);

export const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');

/** Changes the bytes of a file on their way, such as their encryption does. */
export type Change = (bytes: ReadableStream<Uint8Array>) => Promise<ReadableStream<Uint8Array>>;

/** Writes an archive under a temporary name, mode 0600. It gets its own name when everything is in it and on the disk. */
export class ArchiveWriter {
  readonly #file: string;
  readonly #temporary: string;
  readonly #pack: Pack;
  readonly #written: Promise<void>;

  private constructor(file: string, temporary: string, tar: Pack, written: Promise<void>) {
    this.#file = file;
    this.#temporary = temporary;
    this.#pack = tar;
    this.#written = written;
    // A disk that is full is told by whichever call comes next.
    written.catch(() => undefined);
  }

  /** Begins a file that must not be there yet. `change` encrypts it. */
  static async open(file: string, { markEntry }: Pick<ArchiveKind, 'markEntry'>, mark: Mark, change?: Change) {
    refuseFile(file);
    const temporary = `${file}.${process.pid}.part`;
    const tar = pack();
    const bytes = change ? Readable.fromWeb((await change(Readable.toWeb(Readable.from(tar)) as never)) as never) : tar;
    const written = pipeline(bytes, openNew(temporary));
    const writer = new ArchiveWriter(file, temporary, tar, written);
    await writer.#entry(markEntry, Buffer.from(`${JSON.stringify(mark, null, 2)}\n`));
    return writer;
  }

  /** Writes content into a folder of the archive. Returns the parts that it became, whose names end in `ending`; no content has none. */
  async add(folder: string, ending: string, content: AsyncIterable<Buffer>): Promise<Part[]> {
    const parts: Part[] = [];
    const flush = async (chunks: Buffer[]) => {
      const content = await compress(Buffer.concat(chunks));
      const name = `${folder}/${String(parts.length + 1).padStart(6, '0')}.${ending}.zst`;
      await this.#entry(name, content);
      parts.push({ name, bytes: content.length, sha256: sha256(content) });
    };
    let chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of content) {
      chunks.push(chunk);
      size += chunk.length;
      if (size < PART_BYTES) continue;
      await flush(chunks);
      [chunks, size] = [[], 0];
    }
    if (size > 0) await flush(chunks);
    return parts;
  }

  /** Adds the manifest, waits for the disk and gives the file its name. `before` is called when only the name is missing. */
  async finish(manifest: Mark, before: () => void | Promise<void> = () => undefined): Promise<void> {
    const text = `${JSON.stringify(manifest, null, 2)}\n`;
    await this.#entry(MANIFEST_ENTRY, Buffer.from(text));
    await this.#entry(MANIFEST_SUM_ENTRY, Buffer.from(`${sha256(text)}\n`));
    this.#pack.finalize();
    await this.#written;
    await sync(this.#temporary);
    await before();
    refuseFile(this.#file);
    await rename(this.#temporary, this.#file);
    // The name is on the disk with its folder only; Windows knows no such thing.
    if (process.platform !== 'win32') await sync(path.dirname(path.resolve(this.#file)));
  }

  /** Removes what was written so far. */
  async abandon(): Promise<void> {
    this.#pack.destroy();
    await this.#written.catch(() => undefined); // Why it is abandoned is what the caller throws.
    await rm(this.#temporary, { force: true });
  }

  async #entry(name: string, content: Buffer): Promise<void> {
    const closed = this.#written.then(() => Promise.reject(new Error('The archive was closed early.')));
    try {
      const added = new Promise<void>((resolve, reject) =>
        this.#pack.entry({ name, mode: 0o600 }, content, (error) => (error ? reject(error) : resolve())),
      );
      await Promise.race([added, closed]);
    } catch (error) {
      // A file that cannot be written is the reason why the archive takes nothing more.
      if (this.#pack.destroyed) await this.#written;
      throw error;
    }
  }
}

function refuseFile(file: string): void {
  if (existsSync(file))
    throw new BackupRefused(`${file} is there already: name another file, or remove that one first.`);
}

async function sync(target: string): Promise<void> {
  const handle = await open(target, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
