/** File of an archive. */
export interface ArchiveFile {
  name: string;
  content: string;
}

/** Earliest time that the format knows, which stands for no time: the same files make the same archive. */
const NO_TIME = new Date(1980, 0, 1);

/** Packs a few small files into a ZIP archive. */
export async function zip(files: ArchiveFile[]): Promise<Buffer> {
  const { strToU8, zipSync } = await import('fflate');
  const contents = Object.fromEntries(files.map(({ name, content }) => [name, strToU8(content)]));
  return Buffer.from(zipSync(contents, { mtime: NO_TIME }));
}
