import { execFile } from 'node:child_process';
import { readFile, realpath, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import Docker from 'dockerode';
import { pack } from 'tar-stream';
import type { Pack } from 'tar-stream';

const run = promisify(execFile);

/** Base images of the tests, made of the machine's own programs, because no registry need be reachable. */
export const BUSYBOX_IMAGE = 'busybox:latest';
export const NODE_IMAGE = 'node:24-alpine';

const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Adds missing base images to the engine; returns the names of those it made. */
export async function ensureBaseImages(socketPath: string): Promise<string[]> {
  const docker = new Docker({ socketPath });
  const made: string[] = [];
  for (const [name, fill] of [
    [BUSYBOX_IMAGE, addBusybox],
    [NODE_IMAGE, addNode],
  ] as const) {
    if (await has(docker, name)) continue;
    await importImage(docker, name, fill);
    made.push(name);
  }
  return made;
}

/** Image with Terraform like the official one, made of the machine's program. */
export const TERRAFORM_IMAGE = 'quarterdeck-test-terraform:1.11.4';

export async function ensureTerraformImage(socketPath: string): Promise<void> {
  const docker = new Docker({ socketPath });
  if (!(await has(docker, TERRAFORM_IMAGE))) await importImage(docker, TERRAFORM_IMAGE, addTerraform);
}

async function addTerraform(archive: Pack): Promise<void> {
  await addBusybox(archive);
  const { stdout: program } = await run('which', ['terraform']);
  await addFile(archive, 'bin/terraform', await realpath(program.trim()));
}

async function has(docker: Docker, name: string): Promise<boolean> {
  try {
    await docker.getImage(name).inspect();
    return true;
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode === 404) return false;
    throw error;
  }
}

export async function importImage(docker: Docker, name: string, fill: (archive: Pack) => Promise<void>): Promise<void> {
  const archive = pack();
  fill(archive).then(
    () => archive.finalize(),
    (error: Error) => archive.destroy(error),
  );
  const [repo, tag] = name.split(':') as [string, string];
  const changes = [`ENV ${PATH}`, 'CMD ["sh"]'];
  const options: object = { changes };
  const answer = await docker.importImage(Readable.from(archive) as NodeJS.ReadableStream, options);
  const text = (await (answer as Readable).setEncoding('utf8').toArray()).join('');
  const id = /sha256:[0-9a-f]{64}/.exec(text)?.[0];
  if (text.includes('"error"') || id === undefined) throw new Error(`The image ${name} cannot be made: ${text}`);
  // Podman's import takes no tag.
  await docker.getImage(id).tag({ repo, tag });
}

export async function addBusybox(archive: Pack): Promise<void> {
  const { stdout: path } = await run('which', ['busybox']).catch(() => {
    throw new Error('The test images are made of busybox: `apt-get install --no-install-recommends busybox-static`.');
  });
  await addFile(archive, 'bin/busybox', path.trim());
  const { stdout: applets } = await run(path.trim(), ['--list']);
  for (const applet of applets
    .trim()
    .split('\n')
    .filter((name) => name !== 'busybox'))
    archive.entry({ name: `bin/${applet}`, type: 'symlink', linkname: 'busybox' });
  for (const name of ['tmp', 'root', 'var', 'etc', 'proc', 'sys', 'dev', 'home/node'])
    archive.entry({ name, type: 'directory', mode: name === 'tmp' ? 0o1777 : 0o755 });
  archive.entry({ name: 'etc/passwd' }, 'root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n');
  archive.entry({ name: 'etc/group' }, 'root:x:0:\nnode:x:1000:\n');
}

/** Adds the Node.js that runs the tests, with the shared libraries that it needs at their own paths. */
export async function addNode(archive: Pack): Promise<void> {
  await addBusybox(archive);
  await addProgram(archive, 'usr/local/bin/node', process.execPath);
}

/** Adds a program with the shared libraries that it needs, at their own paths. */
export async function addProgram(archive: Pack, name: string, path: string): Promise<void> {
  await addFile(archive, name, await realpath(path));
  await addLibraries(archive, path);
}

/** Adds the shared libraries that a program needs, without the program itself. */
export async function addLibraries(archive: Pack, path: string): Promise<void> {
  const { stdout } = await run('ldd', [path]);
  for (const [, library] of stdout.matchAll(/(?:=> |^\s*)(\/\S+) \(/gm))
    await addFile(archive, library!.slice(1), await realpath(library!));
}

/** Names already in an archive: programs share libraries. */
const added = new WeakMap<Pack, Set<string>>();

/** Adds a file of this machine, once. */
export async function addFile(archive: Pack, name: string, path: string): Promise<void> {
  const names = added.get(archive) ?? new Set();
  if (names.has(name)) return;
  added.set(archive, names.add(name));
  const { mode } = await stat(path);
  const bytes = await readFile(path);
  await new Promise<void>((resolve, reject) => {
    archive.entry({ name, mode: mode & 0o777 }, bytes, (error) => (error ? reject(error) : resolve()));
  });
}

/** Removes images that `ensureBaseImages` made in an existing engine. */
export async function removeImages(socketPath: string, names: string[]): Promise<void> {
  const docker = new Docker({ socketPath });
  for (const name of names) await docker.getImage(name).remove({ force: true });
}
