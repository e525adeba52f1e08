import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { extract } from 'tar-stream';
import { MAX_OUTPUT_BYTES, outputTooLarge } from '#runtimes/tools/task-output.ts';
import { unless } from './errors.ts';

/** Reads a file of a container, running or not; null if it is missing or not a file. A file that is too large is not read. */
export async function readFileOf(container: Docker.Container, path: string): Promise<Buffer | null> {
  const archive = (await unless([404], container.getArchive({ path }))) as Readable | null;
  if (archive === null) return null;
  const entries = extract();
  archive.pipe(entries);
  archive.once('error', (error) => entries.destroy(error));
  try {
    for await (const entry of entries) {
      const { type, size } = entry.header;
      if (type !== 'file') return null;
      if (size > MAX_OUTPUT_BYTES) throw outputTooLarge(path, size);
      const parts: Buffer[] = [];
      for await (const part of entry) parts.push(part as Buffer);
      return Buffer.concat(parts);
    }
    return null;
  } finally {
    archive.destroy();
  }
}
