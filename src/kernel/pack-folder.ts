import { constants, createReadStream } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pack, type Pack } from 'tar-stream';

/** File of a folder, as it may go into an archive. */
export interface PackedEntry {
  /** Absolute path. */
  path: string;
  /** Path below the folder, with `/` between its parts. */
  name: string;
  /** `other` stands for sockets, named pipes and devices. */
  type: 'file' | 'directory' | 'link' | 'other';
}

/** Returns a tar archive, plain, that `fill` adds entries to. An error of `fill` is that of the stream. */
export function packed(fill: (archive: Pack) => Promise<void>): Readable {
  const archive = pack();
  fill(archive).then(
    () => archive.finalize(),
    (error: Error) => archive.destroy(error),
  );
  return Readable.from(archive);
}

/** Lists everything below a folder in the order of names, folders before what they hold. Folders that `enters` refuses are left out whole. */
export async function* listEntries(
  root: string,
  enters: (name: string) => boolean = () => true,
  below = '',
): AsyncGenerator<PackedEntry> {
  const found = await readdir(path.join(root, below), { withFileTypes: true });
  for (const entry of found.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    const name = path.posix.join(below, entry.name);
    const type = entry.isDirectory()
      ? 'directory'
      : entry.isSymbolicLink()
        ? 'link'
        : entry.isFile()
          ? 'file'
          : 'other';
    if (type === 'directory' && !enters(name)) continue;
    yield { path: path.join(root, name), name, type };
    if (type === 'directory') yield* listEntries(root, enters, name);
  }
}

/**
 * Adds an entry to an archive, under its name or another one. A link is packed as a link, never as its target; owners are 0. `open` lets
 * everyone read and write. Throws Error for an entry of type `other`.
 */
export async function addEntry(
  archive: Pack,
  { path: file, name: own, type }: PackedEntry,
  { name = own, open = false }: { name?: string; open?: boolean } = {},
): Promise<void> {
  if (type === 'other') throw new Error(`${file} is no file, folder or link.`);
  if (type === 'link') return void archive.entry({ name, type: 'symlink', linkname: await readlink(file) });
  const { size, mode: present, mtime } = await lstat(file);
  // Everyone gets the owner's permission to execute a file or to enter a folder.
  const mode = (present & 0o7777) | (open ? 0o666 | (present & 0o100 ? 0o111 : 0) : 0);
  if (type === 'directory') return void archive.entry({ name, type, mode, mtime, size: 0 });
  if (size === 0) return void archive.entry({ name, mode, mtime }, '');
  // A file that grows meanwhile is taken as long as it was, and one that became a link is not followed.
  const flags = (constants.O_RDONLY | constants.O_NOFOLLOW) as unknown as string;
  await pipeline(createReadStream(file, { flags, end: size - 1 }), archive.entry({ name, size, mode, mtime }));
}
