import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Extract } from 'tar-stream';

type Entry = Extract extends AsyncIterable<infer T> ? T : never;

/** Largest unpacked size of an archive, in bytes: a few packed kilobytes may become gigabytes. */
const MAX_UNPACKED = 100 * 1024 * 1024;
const MAX_FILE = 1024 * 1024;
const MAX_ENTRIES = 10_000;

/**
 * Text of a file of a packed chart, named from the chart's own folder (`values.yaml`); undefined where it has none. Throws Error saying
 * what is wrong with the archive. Nothing is written anywhere.
 */
export async function readPackedFile(archive: Buffer, file: string): Promise<string | undefined> {
  for await (const entry of entriesOf(archive)) {
    const [, ...rest] = partsOf(entry);
    if (entry.header.type !== 'file' || rest.join('/') !== file) {
      entry.resume();
      continue;
    }
    if ((entry.header.size ?? 0) > MAX_FILE) throw new Error(`${file} is larger than ${MAX_FILE / 1024} KiB`);
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString();
  }
  return undefined;
}

/** Throws Error for an archive that is too large, has a link, or leads out of its folder. Nothing is written anywhere. */
export async function checkArchive(archive: Buffer): Promise<void> {
  let count = 0;
  for await (const entry of entriesOf(archive)) {
    const { name, type } = entry.header;
    if (++count > MAX_ENTRIES) throw new Error(`it has more than ${MAX_ENTRIES} files`);
    if (type !== 'file' && type !== 'directory' && !String(type).startsWith('pax'))
      throw new Error(`${name} is a ${type}, and only files and folders are taken`);
    if (name.startsWith('/') || /[\\\0]/.test(name) || partsOf(entry).includes('..'))
      throw new Error(`${name} leads out of the chart`);
    entry.resume();
  }
}

const partsOf = ({ header }: Entry): string[] => header.name.replace(/^\.\//, '').split('/');

/** Yields the entries of a packed archive; the caller reads each or lets it go on. */
async function* entriesOf(archive: Buffer): AsyncGenerator<Entry> {
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
    yield* entries;
  } finally {
    unpacked.destroy();
  }
}
