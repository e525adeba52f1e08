import {
  chmodSync,
  constants,
  copyFileSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ignoreFilter, segmentPattern } from '#runtimes/host/view/patterns.ts';
import { isWithin, kindOf, resolveInRoot } from '#runtimes/host/view/root-path.ts';

/** Instruction COPY or ADD. JSON: it is passed to the process inside the view. */
export interface CopyJob {
  /** Folder of the sources; null is the view of `COPY --from`. */
  base: string | null;
  /** Folder (the checkout) that sources and their links must lie in; null if no source can lead out (`--from`). */
  allowed: string | null;
  /** Sources as written, patterns included. */
  sources: string[];
  /** Lines of .dockerignore. */
  ignore: string[];
  /** Absolute path in the view; a slash at its end marks a folder. */
  destination: string;
  /** Mode of the copies (`--chmod`); null keeps the original one. */
  mode: number | null;
  /** Inline files (`COPY <<EOF`): name -> content. */
  inline: Record<string, string>;
  /** Account that owns the copies; the copying account if absent. */
  owner?: number;
}

/** Source of a copy: the path as written and the real one. */
interface Source {
  written: string;
  real: string;
}

/** Differences between a copy and its original. */
type Changes = Pick<CopyJob, 'mode' | 'owner'>;

/** Copies into the tree `root` as `COPY` does: a folder's content, a file under its name or the destination's. */
export function copyInto(root: string, job: CopyJob & { base: string }): void {
  const sources = job.sources.flatMap((pattern) => matches(job, pattern));
  const target = resolveInRoot(root, job.destination);
  const inline = Object.entries(job.inline);
  const asFolder =
    job.destination.endsWith('/') || sources.length + inline.length > 1 || kindOf(target) === 'directory';
  for (const source of sources) copySource(root, job, source, asFolder);
  for (const [name, content] of inline) {
    const path = resolveInRoot(root, asFolder ? join(job.destination, name) : job.destination);
    replaceFile(path, (fresh) => writeFileSync(fresh, content, { flag: 'wx' }));
    chmodSync(path, job.mode ?? 0o644);
  }
}

function copySource(root: string, job: CopyJob & { base: string }, source: Source, asFolder: boolean): void {
  if (kindOf(source.real) === 'directory') {
    const ignored = ignoreFilter(job.ignore);
    copyFolder(root, source.real, job.destination, job, (path) => ignored(join(source.written, path)));
    return;
  }
  const destination = asFolder ? join(job.destination, basename(source.written)) : job.destination;
  copyEntry(root, source.real, destination, job);
}

/** Returns the paths in the base that match a source pattern. Throws if there are none, or if one leads out of the checkout. */
function matches(job: CopyJob & { base: string }, pattern: string): Source[] {
  const parts = pattern.split('/').filter((part) => part !== '' && part !== '.');
  if (job.allowed !== null && leavesFolder(parts)) throw new Error(outside(pattern));
  let found = [''];
  for (const part of parts) {
    const like = segmentPattern(part);
    found = found.flatMap((path) => {
      if (!/[*?[\\]/.test(part)) return [join(path, part)];
      const folder = realSource(job, path);
      const names = folder && kindOf(folder) === 'directory' ? readdirSync(folder) : [];
      return names.filter((name) => like.test(name)).map((name) => join(path, name));
    });
  }
  const ignored = ignoreFilter(job.ignore);
  const sources = found.flatMap((written) => {
    const real = written !== '' && ignored(written) && !ignored.keepsSome ? null : realSource(job, written);
    return real === null ? [] : [{ written, real }];
  });
  const usable = sources.filter(({ written, real }) => kindOf(real) === 'directory' || !ignored(written));
  if (usable.length === 0) throw new Error(`"${pattern}" is not in the build context, or .dockerignore leaves it out.`);
  return usable;
}

/** Returns the real path of a source; null if it does not exist. */
function realSource(job: CopyJob & { base: string }, path: string): string | null {
  if (job.allowed === null) {
    const real = resolveInRoot(job.base, path);
    return kindOf(real) === null ? null : real;
  }
  let real: string;
  try {
    real = realpathSync(join(job.base, path));
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
  if (!isWithin(job.allowed, real)) throw new Error(outside(path));
  return real;
}

const outside = (path: string) => `"${path}" leads out of the repository; only what is in it can be copied.`;

/** Returns whether `..` goes above the folder that the path starts in. */
function leavesFolder(parts: string[]): boolean {
  let depth = 0;
  return parts.some((part) => (part === '..' ? --depth : ++depth) < 0);
}

function copyFolder(
  root: string,
  from: string,
  to: string,
  changes: Changes,
  ignored: (path: string) => boolean,
  below = '',
): void {
  const target = resolveInRoot(root, to);
  if (kindOf(target) === null) {
    mkdirSync(target, { recursive: true, mode: 0o755 });
    give(target, changes);
  } else if (kindOf(target) !== 'directory') throw new Error(`${to} is a file; a folder cannot be copied over it.`);
  for (const name of readdirSync(from)) {
    const path = join(below, name);
    const source = join(from, name);
    if (kindOf(source) === 'directory') {
      // An ignored folder may hold files that an exception (`!`) includes: the folder is made only for those.
      if (ignored(path) && !holdsKept(source, path, ignored)) continue;
      copyFolder(root, source, join(to, name), changes, ignored, path);
      chmodSync(resolveInRoot(root, join(to, name)), changes.mode ?? (lstatSync(source).mode & 0o777) | 0o700);
    } else if (!ignored(path)) copyEntry(root, source, join(to, name), changes);
  }
}

function holdsKept(folder: string, path: string, ignored: (path: string) => boolean): boolean {
  return readdirSync(folder, { withFileTypes: true }).some((entry) => {
    const inside = join(path, entry.name);
    if (!ignored(inside)) return true;
    return entry.isDirectory() && holdsKept(join(folder, entry.name), inside, ignored);
  });
}

/** Copies a file or a link as it is; devices, sockets and pipes are left out, as they are in a build context. */
function copyEntry(root: string, from: string, to: string, changes: Changes): void {
  const kind = kindOf(from);
  const target = kind === 'link' ? join(resolveInRoot(root, dirname(to)), basename(to)) : resolveInRoot(root, to);
  if (kind === 'link') {
    replaceFile(target, (path) => symlinkSync(readlinkSync(from), path));
    give(target, changes);
  }
  if (kind !== 'file') return;
  const stat = lstatSync(from);
  replaceFile(target, (path) => copyFileSync(from, path, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE));
  give(target, changes);
  chmodSync(target, changes.mode ?? stat.mode & 0o777);
  utimesSync(target, stat.atime, stat.mtime);
}

function give(path: string, { owner }: Changes): void {
  if (owner !== undefined) lchownSync(path, owner, owner);
}

/** Removes the existing file and creates a new one: nothing is written through a link or into a file that others share. */
function replaceFile(path: string, make: (path: string) => void): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  if (kindOf(path) === 'directory') throw new Error(`${path} is a folder; a file cannot be copied over it.`);
  rmSync(path, { force: true });
  make(path);
}
