import { gzipSync } from 'node:zlib';
import { pack, type Header } from 'tar-stream';

/** Entry of an archive: a file with its content, or a header of something else. */
export type ArchiveEntry = [name: string, content: string] | Partial<Header>;

/** Packs entries into a tar archive, plain. Names are taken as they are. */
export async function archiveOf(...entries: ArchiveEntry[]): Promise<Buffer<ArrayBuffer>> {
  const archive = pack();
  for (const entry of entries)
    if (Array.isArray(entry)) archive.entry({ name: entry[0] }, entry[1]);
    else archive.entry({ name: 'entry', ...entry }, '');
  archive.finalize();
  const parts: Buffer[] = [];
  for await (const part of archive) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

/** As `archiveOf`, packed by gzip. */
export const packedOf = async (...entries: ArchiveEntry[]): Promise<Buffer<ArrayBuffer>> =>
  gzipSync(await archiveOf(...entries));
