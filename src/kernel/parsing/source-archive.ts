import { createReadStream } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { extract, type Extract, type Header } from 'tar-stream';
import { checkLink, foldedOf, pathOf, shown } from '#kernel/parsing/archive-names.ts';
import { TooMuch } from '#kernel/parsing/problem.ts';
import type { ArchiveContent, ArchiveOptions } from '#kernel/parsing/formats.ts';

type Entry = Extract extends AsyncIterable<infer T> ? T : never;
type Kind = 'folder' | 'file' | 'link';

const MIB = 2 ** 20;
/** Zeros at the end of an archive. */
const END_BYTES = 1024;
/** Bytes of an archive for each file besides its content: headers and the rest of blocks. */
const MOST_OVERHEAD = 4096;
/** Bytes of the extended headers (pax, long names of GNU) before an entry. */
const MOST_HEADER_BYTES = 64 * 1024;
/** Bytes that may be read before the entry that they belong to is known. */
const READ_AHEAD = MIB / 2;
const BLOCK = 512;
const MODES = { file: '100644', program: '100755', link: '120000' };

/**
 * Reads a tar archive (plain or gzip) and writes its files as one commit. `archive` is its file; the commit is in the format of `git
 * fast-import`. Throws Error that names the entry for everything that is not a plain file, folder or link within the archive.
 */
export async function convertArchive(archive: string, options: ArchiveOptions): Promise<ArchiveContent> {
  const output = await open(options.output, 'wx', 0o600);
  try {
    const folder = new Folder(output, options);
    await readEntries(archive, options, folder);
    return await folder.end();
  } finally {
    await output.close();
  }
}

async function readEntries(archive: string, { mostBytes, mostFiles }: ArchiveOptions, folder: Folder): Promise<void> {
  const entries = extract();
  const source = createReadStream(archive);
  const bytes = (await isGzip(archive)) ? source.pipe(createGunzip()) : source;
  let failure: Error | undefined;
  const fail = (error: Error) => {
    failure ??= error;
    entries.destroy(error);
  };
  const position = new Position();
  // A destroyed archive may look to the loop as if it had ended.
  entries.on('error', (error) => (failure ??= explained(error, position.entry)));
  source.on('error', fail);
  bytes.on('error', (error: Error) => fail(new Error(`it is not whole: ${error.message}`)));
  // Of headers as well, which are not counted otherwise.
  const mostRead = mostBytes + mostFiles * MOST_OVERHEAD + MIB;
  let end = Buffer.alloc(0);
  bytes.on('data', (chunk: Buffer) => {
    position.read += chunk.length;
    end = Buffer.concat([end, chunk.subarray(-END_BYTES)]).subarray(-END_BYTES);
    if (position.read > mostRead) fail(tooLarge(mostBytes));
    // Zeros are the end of an archive, in records of any length.
    if (position.isFar && chunk.some((byte) => byte !== 0)) fail(headerTooLarge());
  });
  bytes.pipe(entries);
  try {
    for await (const entry of entries) {
      position.enter(entry.header);
      await folder.add(entry);
    }
    if (failure) throw failure as Error;
    // One that ends between two entries would lack the rest of its files.
    if (end.length < END_BYTES || end.some((byte) => byte !== 0))
      throw new Error('it is not whole: it ends without the mark of its end');
  } catch (error) {
    throw failure ?? explained(error as Error, position.entry);
  } finally {
    source.destroy();
    bytes.destroy();
  }
}

/** Progress of the reading of an archive, in bytes from its beginning. */
class Position {
  read = 0;
  /** Name of the last entry; undefined before the first one. */
  entry: string | undefined;
  /** End of the last entry, where the headers of the next one begin. */
  #next = 0;

  /** True where more was read than the headers of the next entry may take. */
  get isFar(): boolean {
    return this.read > this.#next + MOST_HEADER_BYTES + READ_AHEAD;
  }

  /** Notes the next entry. Throws TooMuch for one with long headers: they are kept in memory, and those for all entries apply to each. */
  enter({ name, type, size, byteOffset }: Header & { byteOffset?: number }): void {
    const begin = byteOffset ?? 0;
    if (begin - BLOCK - this.#next > MOST_HEADER_BYTES) throw headerTooLarge();
    this.#next = begin + (type === 'directory' ? 0 : Math.ceil((size ?? 0) / BLOCK) * BLOCK);
    this.entry = name;
  }
}

const headerTooLarge = () => new TooMuch(`the header of an entry is larger than ${MOST_HEADER_BYTES / 1024} KiB`);

const tooLarge = (most: number) => new TooMuch(`it is larger than ${most / MIB} MiB when it is unpacked`);

/** Returns the error of the library in the words of this page. `after` is the entry before; undefined for the first one. */
function explained(error: Error, after: string | undefined): Error {
  const where = after === undefined ? 'the first entry' : `the entry after ${shown(after)}`;
  if (/^Invalid tar header/.test(error.message))
    return new Error(
      after === undefined ? 'it is not a tar archive, plain or packed by gzip' : `the header of ${where} is damaged`,
    );
  if (error.message === 'Invalid header') return new Error(`the header of ${where} names a size that is no number`);
  if (/^Header exceeds/.test(error.message)) return headerTooLarge();
  // The second is what the reading of a file is told, when the archive ends within it.
  if (['Unexpected end of data', 'Stream was destroyed'].includes(error.message))
    return new Error('it is not whole: it ends within an entry');
  return error;
}

async function isGzip(file: string): Promise<boolean> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2, 0);
    return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b;
  } finally {
    await handle.close();
  }
}

/** Folder that grows by the entries of an archive. Contents are written as they come, the tree with the commit at the end. */
class Folder {
  readonly #output: FileHandle;
  readonly #options: ArchiveOptions;
  readonly #kinds = new Map<string, Kind>([['', 'folder']]);
  readonly #files = new Map<string, { mode: string; mark: number; target?: string }>();
  /** Paths by their folded form: where names differ in case only, one of them must not be a link, through which the other is written. */
  readonly #folded = new Map<string, { path: string; kind: Kind }>();
  #bytes = 0;
  #marks = 0;

  constructor(output: FileHandle, options: ArchiveOptions) {
    this.#output = output;
    this.#options = options;
  }

  async add(entry: Entry): Promise<void> {
    const { header } = entry;
    const path = pathOf(header.name);
    switch (header.type) {
      case 'directory':
        this.#addFolder(path);
        break;
      case 'file':
      case 'contiguous-file':
        return this.#addFile(path, entry);
      case 'symlink':
        return this.#addLink(path, header.linkname ?? '', entry);
      case 'link':
        this.#addName(path, header);
        break;
      default:
        throw new Error(`the entry ${shown(header.name)} is no file, folder or link, but ${sortOf(header.type)}`);
    }
    entry.resume();
  }

  /** Writes the commit. Throws Error for a folder without files. */
  async end(): Promise<ArchiveContent> {
    const { author, seconds, message } = this.#options;
    if (this.#files.size === 0) throw new Error('it has no files');
    const text = Buffer.from(message);
    const person = `${author.replaceAll(/[<>\p{Cc}]/gu, ' ').trim() || 'unknown'} <> ${seconds} +0000`;
    const names = [...this.#files].map(([path, { mode, mark }]) => `M ${mode} :${mark} "${quoted(path)}"\n`);
    await this.#write(
      `commit refs/heads/folder\nauthor ${person}\ncommitter ${person}\ndata ${text.length}\n${message}\n`,
    );
    await this.#write(`${names.join('')}done\n`);
    return { files: this.#files.size, bytes: this.#bytes };
  }

  async #addFile(path: string, entry: Entry): Promise<void> {
    const { name, size, mode, pax } = entry.header;
    if (Object.keys(pax ?? {}).some((key) => key.startsWith('GNU.sparse')))
      throw new Error(`the entry ${shown(name)} is a sparse file: pack it without --sparse`);
    this.#count(size);
    this.#place(path, 'file', { mode: (mode & 0o100) === 0 ? MODES.file : MODES.program, mark: ++this.#marks });
    await this.#write(`blob\nmark :${this.#marks}\ndata ${size}\n`);
    for await (const chunk of entry) await this.#write(chunk as Buffer);
    await this.#write('\n');
  }

  async #addLink(path: string, target: string, entry: Entry): Promise<void> {
    checkLink(path, target);
    this.#count(0);
    this.#place(path, 'link', { mode: MODES.link, mark: ++this.#marks, target });
    await this.#write(`blob\nmark :${this.#marks}\ndata ${Buffer.byteLength(target)}\n${target}\n`);
    entry.resume();
  }

  /** Adds another name of a file or a symbolic link that came before. The target of a link is counted from the new name. */
  #addName(path: string, { linkname }: Header): void {
    const refuse = (reason: string) => new Error(`the hard link ${shown(path)} ${reason}`);
    const target = linkname ?? '';
    if (target.startsWith('/') || target.split('/').includes('..'))
      throw refuse(`leads to ${shown(target)}, out of the folder`);
    const file = this.#files.get(pathOf(target));
    if (!file) throw refuse(`leads to ${shown(target)}, which is no file before it in the archive`);
    if (file.target !== undefined) checkLink(path, file.target);
    this.#count(0);
    this.#place(path, this.#kinds.get(pathOf(target))!, file);
  }

  #addFolder(path: string): void {
    for (const folder of foldersOf(path)) this.#enter(folder, path);
    this.#enter(path, path);
  }

  #place(path: string, kind: Kind, file: { mode: string; mark: number; target?: string }): void {
    for (const folder of foldersOf(path)) this.#enter(folder, path);
    const present = this.#kinds.get(path);
    if (present) throw new Error(`the entry ${shown(path)} is there twice`);
    this.#fold(path, kind);
    this.#kinds.set(path, kind);
    this.#files.set(path, file);
  }

  /** Notes a folder on the way to an entry. */
  #enter(folder: string, path: string): void {
    const present = this.#kinds.get(folder);
    if (present === 'folder') return;
    if (present) throw new Error(`the entry ${shown(path)} needs a folder ${shown(folder)}, which is a ${present}`);
    // Folders take memory as files do, and an archive may have nothing else.
    if (this.#kinds.size > this.#options.mostFiles * 4)
      throw new TooMuch(`it has more than ${this.#options.mostFiles * 4} folders and files`);
    this.#fold(folder, 'folder');
    this.#kinds.set(folder, 'folder');
  }

  #fold(path: string, kind: Kind): void {
    const folded = foldedOf(path);
    const present = this.#folded.get(folded);
    if (present && (present.kind === 'link' || kind === 'link'))
      throw new Error(
        `the entries ${shown(present.path)} and ${shown(path)}, of which one is a link, have the same name on some file systems`,
      );
    this.#folded.set(folded, { path, kind });
  }

  #count(bytes: number): void {
    const { mostFiles, mostBytes } = this.#options;
    if (this.#files.size >= mostFiles) throw new TooMuch(`it has more than ${mostFiles} files`);
    this.#bytes += bytes;
    if (this.#bytes > mostBytes) throw tooLarge(mostBytes);
  }

  async #write(data: string | Buffer): Promise<void> {
    const bytes = typeof data === 'string' ? Buffer.from(data) : data;
    for (let at = 0; at < bytes.length;) at += (await this.#output.write(bytes, at)).bytesWritten;
  }
}

/** Returns the folders that a path lies in, the outermost first. */
function foldersOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, at) => parts.slice(0, at + 1).join('/'));
}

/** Quotes a path for fast-import, which takes all other bytes as they are. */
const quoted = (path: string): string => path.replaceAll(/["\\]/g, (sign) => `\\${sign}`);

function sortOf(type: string | null | undefined): string {
  if (type === 'character-device' || type === 'block-device') return 'a device';
  if (type === 'fifo') return 'a named pipe';
  return 'something else';
}
