import { dirname, join } from 'node:path/posix';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import type { TaskSpec } from '#runtimes/runtime.ts';
import { packFolder } from './build-context.ts';
import { readFileOf } from './container-files.ts';
import { isBeingRemoved, unless } from './errors.ts';

/**
 * File with the reason why the runtime ends an execution, put into its container before. An exit status alone can't tell an interrupted
 * command from one that ended by itself, and a container's labels are fixed.
 */
const MARK = '/.quarterdeck-ended';

export type EndedBy = 'timeout' | 'abort';

/** Records that a command is ended early, and why; the first reason stays. A container that is being removed needs none. */
export async function markEnded(container: Docker.Container, why: EndedBy): Promise<void> {
  try {
    if ((await readEnded(container)) !== null) return;
    await unless([404], putEntry(container, { name: MARK.slice(1), mode: 0o444 }, why));
  } catch (error) {
    if (!isBeingRemoved(error)) throw error;
  }
}

/** Returns the reason why the runtime ended a command; null if it did not. */
export async function readEnded(container: Docker.Container): Promise<EndedBy | null> {
  return ((await readFileOf(container, MARK))?.toString('utf8') as EndedBy | undefined) ?? null;
}

/**
 * Creates the folder of the output file if it is missing, writable for any account that the image runs as. A folder that contains mounts is
 * opened in any case: the engine has created it for them, owned by root.
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

/** Copies the files of local folders into the container, writable for any account that the image runs as. Links are copied as links. */
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

/** Reads the output file; null if there is none. Throws RuntimeError `failed` if it is too large. */
export async function readOutput(
  container: Docker.Container,
  { outputPath }: Pick<TaskSpec, 'outputPath'>,
): Promise<string | null> {
  if (outputPath === null) return null;
  return (await readFileOf(container, outputPath))?.toString('utf8') ?? null;
}
