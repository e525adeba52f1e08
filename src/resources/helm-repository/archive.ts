import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';

/** Largest unpacked size of an archive, in bytes: a few packed kilobytes may become gigabytes. */
const MAX_UNPACKED = 100 * 1024 * 1024;
const MAX_FILE = 1024 * 1024;

/**
 * Text of a file of a packed chart, named from the chart's own folder (`values.yaml`); undefined where it has none. Throws Error saying
 * what is wrong with the archive. Nothing is written anywhere.
 */
export async function readPackedFile(archive: Buffer, file: string): Promise<string | undefined> {
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
      const [, ...rest] = entry.header.name.replace(/^\.\//, '').split('/');
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
  } finally {
    unpacked.destroy();
  }
}
