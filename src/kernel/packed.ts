import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Extract } from 'tar-stream';

export type PackedEntry = Extract extends AsyncIterable<infer T> ? T : never;

/** Largest unpacked size of an archive, in bytes: a few packed kilobytes may become gigabytes. */
const MAX_UNPACKED = 100 * 1024 * 1024;

/**
 * Yields the entries of a packed archive; the caller reads each or lets it go on. Throws Error for an archive that is broken or too large,
 * and for a name that other programs read as another one.
 */
export async function* entriesOf(archive: Buffer): AsyncGenerator<PackedEntry> {
  // Loaded when it is needed.
  const { extract } = await import('tar-stream');
  const unpacked = Readable.from([archive]).pipe(createGunzip());
  const entries = extract();
  let size = 0;
  unpacked.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > MAX_UNPACKED) unpacked.destroy(new Error('it is too large when it is unpacked'));
  });
  unpacked.on('error', (error) => entries.destroy(error));
  unpacked.pipe(entries);
  try {
    for await (const entry of entries) {
      refuseName(entry.header.name);
      yield entry;
    }
  } finally {
    unpacked.destroy();
  }
}

/** Throws Error for a name that leads out of the archive, or that a program may normalize to another name. */
function refuseName(name: string): void {
  const parts = name.replace(/^\.\//, '').replace(/\/$/, '').split('/');
  if (name.startsWith('/') || /[\\\0]/.test(name) || parts.includes('..'))
    throw new Error(`${name} leads out of the chart`);
  const isRoot = name === './' || name === '.';
  if (!isRoot && parts.some((part) => part === '' || part === '.'))
    throw new Error(`${name} must be written without empty parts and without "."`);
}

/** Returns the content of an entry. Throws Error for one of more bytes than `most`. */
export async function contentOf(entry: PackedEntry, most: number): Promise<Buffer> {
  const { name, size } = entry.header;
  if (size > most) throw new Error(`${name} is larger than ${most / 1024} KiB`);
  const chunks: Buffer[] = [];
  for await (const chunk of entry) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
