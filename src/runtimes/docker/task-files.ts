import { dirname, join } from 'node:path/posix';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { extract, pack } from 'tar-stream';
import type { TaskSpec } from '#runtimes/runtime.ts';
import { MAX_OUTPUT_BYTES, outputTooLarge } from '#runtimes/tools/task-output.ts';
import { packFolder } from './build-context.ts';
import { isBeingRemoved, unless } from './errors.ts';

/**
 * A file that is put into an execution's container before it is ended by us: what it says is why. An exit status alone can't tell an
 * interrupted command from one that ended by itself, and a container's labels are fixed.
 */
const MARK = '/.quarterdeck-ended';

export type EndedBy = 'timeout' | 'abort';

/** Writes down that a command is ended before its time, and why; the first word stands. What is being removed needs none. */
export async function markEnded(container: Docker.Container, why: EndedBy): Promise<void> {
  try {
    if ((await readEnded(container)) !== null) return;
    await unless([404], putEntry(container, { name: MARK.slice(1), mode: 0o444 }, why));
  } catch (error) {
    if (!isBeingRemoved(error)) throw error;
  }
}

/** Why a command was ended by us, null when it wasn't. */
export async function readEnded(container: Docker.Container): Promise<EndedBy | null> {
  return ((await readFileFrom(container, MARK))?.toString('utf8') as EndedBy | undefined) ?? null;
}

/**
 * Makes the folder of the output file where it isn't there, open to whatever account the image runs as. One in which something is mounted
 * is opened in any case: the engine has made it for that, as root's.
 */
export async function makeOutputFolder(
  container: Docker.Container,
  { outputPath, storage, files }: Pick<TaskSpec, 'outputPath' | 'storage' | 'files'>,
): Promise<void> {
  if (outputPath === null) return;
  const folder = dirname(outputPath);
  const mounted = [...storage.map(({ mountPath }) => mountPath), ...files.map(({ path }) => path)];
  const isMadeForMounts = mounted.some((path) => path.startsWith(`${folder}/`));
  if (!isMadeForMounts && (await unless([404], container.infoArchive({ path: folder }))) !== null) return;
  await putEntry(container, { name: join(folder.slice(1), '/'), type: 'directory', mode: 0o777 });
}

/** Puts the files of local folders into it, open to whatever account the image runs as. Links go in as links. */
export async function putFolders(container: Docker.Container, folders: TaskSpec['folders'] = []): Promise<void> {
  for (const { path, directory } of folders) await container.putArchive(packFolder(path, directory), { path: '/' });
}

async function putEntry(
  container: Docker.Container,
  header: Parameters<ReturnType<typeof pack>['entry']>[0],
  content = '',
) {
  const archive = pack();
  archive.entry(header, content);
  archive.finalize();
  await container.putArchive(Readable.from(archive), { path: '/' });
}

/** Content of the output file, null when there is none. Throws RuntimeError `failed` when it is too large. */
export async function readOutput(
  container: Docker.Container,
  { outputPath }: Pick<TaskSpec, 'outputPath'>,
): Promise<string | null> {
  if (outputPath === null) return null;
  return (await readFileFrom(container, outputPath))?.toString('utf8') ?? null;
}

/** A file of a container, running or not; null when it isn't there or is no file. Nothing is read of one that is too large. */
async function readFileFrom(container: Docker.Container, path: string): Promise<Buffer | null> {
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
