import { realpath, stat } from 'node:fs/promises';
import { join, posix, relative, sep } from 'node:path';
import type { Readable } from 'node:stream';
import type { Pack } from 'tar-stream';
import { readIgnoreRules } from '#kernel/docker-ignore.ts';
import { addEntry, listEntries, packed } from '#kernel/pack-folder.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { BuildSpec } from '#runtimes/runtime.ts';

/** Checked source of a build: its paths lie inside the checkout, links resolved. */
export interface BuildSource {
  /** Absolute path of the checkout. */
  checkout: string;
  /** Absolute path of the context folder. */
  root: string;
  /** Absolute path of the Dockerfile. */
  dockerfile: string;
  /** Name of the Dockerfile in the archive. */
  dockerfileName: string;
}

/** Name in the archive of a Dockerfile that lies outside the context folder or behind a link. */
const FOREIGN_DOCKERFILE = '.quarterdeck.Dockerfile';

/**
 * Finds the context folder and the Dockerfile of a build. Links may lead anywhere inside the checkout, but not out of it. Throws
 * RuntimeError: `refused` for a path that leaves the repository, `build_failed` for a missing one.
 */
export async function findSource(
  spec: Pick<BuildSpec, 'directory' | 'rootPath' | 'dockerfilePath'>,
): Promise<BuildSource> {
  const checkout = await realpath(spec.directory);
  const wantedRoot = inside(checkout, checkout, spec.rootPath);
  const root = await resolveInside(checkout, wantedRoot, `The root path ${spec.rootPath}`);
  if (!(await stat(root)).isDirectory())
    throw new RuntimeError('build_failed', `The root path ${spec.rootPath} is not a folder.`);
  const wanted = inside(checkout, root, spec.dockerfilePath);
  const dockerfile = await resolveInside(checkout, wanted, `The Dockerfile ${spec.dockerfilePath}`);
  if (!(await stat(dockerfile)).isFile())
    throw new RuntimeError('build_failed', `The Dockerfile ${spec.dockerfilePath} is not a file.`);
  const plain = dockerfile === wanted && isWithin(root, dockerfile);
  const dockerfileName = plain ? toPosix(relative(root, dockerfile)) : FOREIGN_DOCKERFILE;
  return { checkout, root, dockerfile, dockerfileName };
}

const toPosix = (path: string): string => path.split(sep).join(posix.sep);
const isWithin = (folder: string, path: string): boolean => path === folder || path.startsWith(folder + sep);

function inside(checkout: string, base: string, path: string): string {
  const joined = join(base, path);
  if (!isWithin(checkout, joined.replace(/(?<=.)\/$/, '')))
    throw new RuntimeError('refused', `The path ${path} leaves the repository.`);
  return joined.replace(/(?<=.)\/$/, '');
}

async function resolveInside(checkout: string, path: string, what: string): Promise<string> {
  const resolved = await realpath(path).catch((error: NodeJS.ErrnoException) => {
    throw new RuntimeError('build_failed', `${what} is not in the repository (${error.code}).`, error);
  });
  if (!isWithin(checkout, resolved)) throw new RuntimeError('refused', `${what} is a link that leaves the repository.`);
  return resolved;
}

/**
 * Packs the context, without the paths that `.dockerignore` excludes, as a tar stream. A link is packed as a link, never as its target, so
 * nothing outside the context is read; sockets and devices are skipped. Owners are 0, as in every client of the engine. `dockerfile`
 * replaces the text of the Dockerfile. Throws RuntimeError `refused` for a `.dockerignore` that leads out of the repository.
 */
export async function packContext(source: BuildSource, dockerfile: string): Promise<Readable> {
  const { root, dockerfileName } = source;
  const keep = await readIgnore(source);
  return packed(async (archive) => {
    await addBytes(archive, dockerfileName, Buffer.from(dockerfile));
    // Ignored folders are walked too: a rule with `!` may include something in them again.
    for await (const entry of listEntries(root))
      if (entry.type !== 'other' && entry.name !== dockerfileName && keep(entry.name)) await addEntry(archive, entry);
  });
}

/** Packs a whole folder as a tar stream, below `path`, readable and writable for everyone. Sockets and devices are skipped. */
export const packFolder = (path: string, directory: string): Readable =>
  packed(async (archive) => {
    const prefix = `${path.slice(1)}/`;
    archive.entry({ name: prefix, type: 'directory', mode: 0o777 });
    for await (const entry of listEntries(directory))
      if (entry.type !== 'other') await addEntry(archive, entry, { name: prefix + entry.name, open: true });
  });

/** Reads the ignore rules; a `<Dockerfile>.dockerignore` beside the Dockerfile takes precedence over the context's own file. */
async function readIgnore(source: BuildSource): Promise<(path: string) => boolean> {
  const own = source.dockerfileName === FOREIGN_DOCKERFILE ? [] : [`${source.dockerfile}.dockerignore`];
  const files = [...own, join(source.root, '.dockerignore')];
  const ignores = await readIgnoreRules(source.checkout, files).catch((error: Error) => {
    throw new RuntimeError('refused', error.message, error);
  });
  return (name) => name === source.dockerfileName || name === '.dockerignore' || !ignores(name);
}

function addBytes(archive: Pack, name: string, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    archive.entry({ name }, bytes, (error) => (error ? reject(error) : resolve()));
  });
}
