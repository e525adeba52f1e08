import { contentOf, entriesOf, type PackedEntry } from '#kernel/packed.ts';

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
    return (await contentOf(entry, MAX_FILE)).toString();
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
    entry.resume();
  }
}

const partsOf = ({ header }: PackedEntry): string[] => header.name.replace(/^\.\//, '').split('/');
