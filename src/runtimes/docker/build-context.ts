import { createReadStream } from 'node:fs';
import { lstat, readFile, readdir, readlink, realpath, stat } from 'node:fs/promises';
import { join, posix, relative, sep } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import dockerignore from '@balena/dockerignore';
import { pack } from 'tar-stream';
import type { Pack } from 'tar-stream';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { BuildSpec } from '#runtimes/runtime.ts';

/** Checked source of a build: both paths lie inside the checkout, links resolved. */
export interface BuildSource {
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
  return { root, dockerfile, dockerfileName: plain ? toPosix(relative(root, dockerfile)) : FOREIGN_DOCKERFILE };
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
 * replaces the text of the Dockerfile.
 */
export function packContext(source: BuildSource, dockerfile: string): Readable {
  const archive = pack();
  fill(archive, source, dockerfile).then(
    () => archive.finalize(),
    (error: Error) => archive.destroy(error),
  );
  return Readable.from(archive);
}

/** Packs a whole folder as a tar stream, below `path`, readable and writable for everyone. */
export function packFolder(path: string, directory: string): Readable {
  const archive = pack();
  const source = { root: directory, prefix: `${path.slice(1)}/`, open: true };
  archive.entry({ name: source.prefix, type: 'directory', mode: 0o777 });
  addFolder(archive, source, () => true, '').then(
    () => archive.finalize(),
    (error: Error) => archive.destroy(error),
  );
  return Readable.from(archive);
}

/** Folder whose files go into an archive, with the options for packing them. */
interface FolderSource {
  root: string;
  /** Prefix of the names in the archive. */
  prefix?: string;
  /** True if everyone may write the files. */
  open?: boolean;
}

type Keep = (path: string) => boolean;

async function fill(archive: Pack, source: BuildSource, dockerfile: string): Promise<void> {
  const keep = await readIgnore(source);
  const { dockerfileName } = source;
  await addBytes(archive, dockerfileName, Buffer.from(dockerfile));
  await addFolder(archive, source, (name) => name !== dockerfileName && keep(name), '');
}

/** Reads the ignore rules; a `<Dockerfile>.dockerignore` beside the Dockerfile takes precedence over the context's own file. */
async function readIgnore(source: BuildSource): Promise<Keep> {
  const own = source.dockerfileName === FOREIGN_DOCKERFILE ? [] : [`${source.dockerfile}.dockerignore`];
  for (const path of [...own, join(source.root, '.dockerignore')]) {
    // Links are not followed: they could lead out of the checkout.
    if (!(await lstat(path).catch(absent))?.isFile()) continue;
    const rules = dockerignore.default().add(await readFile(path, 'utf8'));
    return (name) => name === source.dockerfileName || name === '.dockerignore' || !rules.ignores(name);
  }
  return () => true;
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}

/** Adds a folder's files. Ignored folders are walked too: a rule with `!` may include something in them again. */
async function addFolder(archive: Pack, source: FolderSource, keep: Keep, folder: string): Promise<void> {
  const { root, prefix = '', open = false } = source;
  const entries = await readdir(join(root, folder), { withFileTypes: true });
  for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    const below = folder === '' ? entry.name : `${folder}/${entry.name}`;
    const path = join(root, below);
    const name = prefix + below;
    if (entry.isDirectory()) {
      if (keep(below)) archive.entry({ name, type: 'directory', ...(await attributes(path, open)), size: 0 });
      await addFolder(archive, source, keep, below);
    } else if (!keep(below)) continue;
    else if (entry.isSymbolicLink()) archive.entry({ name, type: 'symlink', linkname: await readlink(path) });
    else if (entry.isFile()) await addFile(archive, name, path, open);
  }
}

const attributes = async (path: string, open: boolean) => {
  const { size, mode, mtime } = await lstat(path);
  // Everyone gets the owner's permission to execute a file or to enter a folder.
  const opened = 0o666 | (mode & 0o100 ? 0o111 : 0);
  return { size, mode: (mode & 0o7777) | (open ? opened : 0), mtime };
};

async function addFile(archive: Pack, name: string, path: string, open: boolean): Promise<void> {
  const { size, mode, mtime } = await attributes(path, open);
  const entry = archive.entry({ name, size, mode, mtime });
  await pipeline(createReadStream(path, { end: Math.max(size - 1, 0) }), entry);
}

function addBytes(archive: Pack, name: string, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    archive.entry({ name }, bytes, (error) => (error ? reject(error) : resolve()));
  });
}
