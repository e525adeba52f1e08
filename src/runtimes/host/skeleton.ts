import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readlinkSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { publishFolder } from '#runtimes/host/publish-folder.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { kindOf } from '#runtimes/host/view/root-path.ts';
import { workFolder } from '#runtimes/tools/work-folders.ts';

/** Top-level folders that every view has, empty at first. */
const EMPTY = ['home', 'media', 'mnt', 'proc', 'root', 'run', 'sys', 'dev', 'tmp'];

/** Entry of a skeleton: a folder with its mode, or a link with its target. */
type Entry = { path: string; mode: number } | { path: string; target: string };

/**
 * Returns the folder that lies below every view's root: mount points and the machine's top-level links. A skeleton never changes, because
 * running views see it (they would lose `/lib64`, and start no program any more): its name is a digest of its content, and a machine that has
 * changed gets another one. Several processes may call this at once. `way` is the folder of the machine in the place of which `tops` has its
 * siblings (`var/lib`); null without.
 */
export function makeSkeleton(below: string, tops: readonly string[], way: string | null): string {
  const entries = entriesOf(tops, way);
  const digest = createHash('sha256').update(JSON.stringify(entries)).digest('hex').slice(0, 16);
  const folder = join(below, `skeleton-${digest}`);
  if (existsSync(folder)) return folder;
  const making = workFolder(join(below, 'skeleton'));
  removeTree(making);
  mkdirSync(making, { recursive: true });
  chmodSync(making, 0o755);
  for (const entry of entries) make(making, entry);
  publishFolder(making, folder);
  return folder;
}

function make(folder: string, entry: Entry): void {
  const path = join(folder, entry.path);
  if ('target' in entry) return symlinkSync(entry.target, path);
  mkdirSync(path, { recursive: true });
  chmodSync(path, entry.mode);
}

/** Returns the entries; folders before what they hold. */
function entriesOf(tops: readonly string[], way: string | null): Entry[] {
  const modes = new Map<string, number>();
  for (const top of tops) for (const path of pathTo(top)) modes.set(path, 0o755);
  for (const name of EMPTY) modes.set(name, name === 'tmp' ? 0o1777 : 0o755);
  if (way !== null) for (const path of pathTo(way)) modes.set(path, statSync(`/${path}`).mode & 0o7777);
  const folders = [...modes].map(([path, mode]) => ({ path, mode })).sort((a, b) => (a.path < b.path ? -1 : 1));
  const links = readdirSync('/')
    .filter((name) => !modes.has(name) && kindOf(`/${name}`) === 'link')
    .map((name) => ({ path: name, target: readlinkSync(`/${name}`) }))
    .filter(({ target }) => isWithinTops(target, tops))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
  return [...folders, ...links];
}

/** Returns a path and the paths above it, the highest first: `var/lib` gives `var` and `var/lib`. */
const pathTo = (path: string): string[] =>
  path.split('/').map((_name, index, names) => names.slice(0, index + 1).join('/'));

const isWithinTops = (target: string, tops: readonly string[]) =>
  tops.some((top) => top.split('/')[0] === target.replace(/^\//, '').split('/')[0]);
