import { chownSync, existsSync, mkdirSync, readdirSync, writeFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { makeInRoot, resolveInRoot, kindOf } from '#runtimes/host/view/root-path.ts';
import { OURS, ownerOf, type Bind, type ViewPlan } from '#runtimes/host/view/plan.ts';

/** Runs `mount` with these arguments; throws when it fails. */
export type Mount = (args: string[]) => void;

/** Devices that a program may expect; none of them reaches a disk. */
const DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'tty'];
/** Entries of /proc that are read-only, as in other container engines: with them the view's root could change the machine. */
const PROC_READ_ONLY = ['sys', 'sysrq-trigger', 'irq', 'bus', 'fs'];
const PROC_HIDDEN = ['kcore', 'keys', 'timer_list', 'sched_debug'];

/** Returns the options of every overlay: changes in `upper`, `lower` below it, the first on top. */
export function overlayOptions(lower: string[], upper: string, work: string): string {
  const escape = (path: string) => path.replace(/[\\:,]/g, (character) => `\\${character}`);
  return `nosuid,nodev,userxattr,lowerdir=${lower.map(escape).join(':')},upperdir=${escape(upper)},workdir=${escape(work)}`;
}

/** Assembles the whole view on `plan.root`. */
export function assemble(plan: ViewPlan, mount: Mount): void {
  const { root } = plan;
  overlays(plan, root, plan.layers, plan.upper, plan.work, mount);
  for (const hidden of plan.hidden) cover(resolveInRoot(root, hidden), mount);
  mount(['-t', 'tmpfs', '-o', 'mode=1777,nosuid,nodev', 'tmpfs', join(root, 'run')]);
  makeInRoot(root, OURS);
  devices(root, mount);
  proc(root, plan.nested, mount);
  if (!plan.nested) mount(['-t', 'sysfs', '-o', 'ro,nosuid,nodev,noexec', 'sysfs', join(root, 'sys')]);
  if (plan.resolv !== null) provideResolver(root, plan.resolv);
  bind(root, { from: plan.node, to: `${OURS}/bin/node`, readOnly: true }, mount);
  // Before the binds inside them, which would make these folders as mount points, and again after the binds that may hold them.
  makeFolders(plan);
  for (const one of plan.binds) bind(root, one, mount);
  makeFolders(plan);
  if (plan.from) {
    const target = makeInRoot(root, `${OURS}/from`);
    overlays(plan, target, plan.from.layers, plan.from.upper, plan.from.work, mount);
    // Files are copied from it with all rights of the view's root.
    for (const hidden of plan.hidden) cover(resolveInRoot(target, hidden), mount);
  }
}

/**
 * Mounts an overlay over each top-level folder, and one over the skeleton for all other entries. A single overlay over `/` fails for an
 * ordinary user, because it holds mounts that are locked.
 */
function overlays(plan: ViewPlan, root: string, layers: string[], upper: string, work: string, mount: Mount): void {
  const one = (part: string, machine: string, target: string) => {
    const above = [...layers, ...(plan.owned === null ? [] : [plan.owned])].map((layer) => join(layer, part));
    const lower = [...above.filter((path) => existsSync(path)), machine];
    const folders = [join(upper, part), join(work, part)] as const;
    for (const folder of folders) mkdirSync(folder, { recursive: true });
    mount(['-t', 'overlay', '-o', overlayOptions(lower, ...folders), 'overlay', target]);
  };
  one('rest', plan.skeleton, root);
  for (const top of plan.tops) if (isThere(plan, top)) one(`top/${top}`, `/${top}`, join(root, top));
}

/**
 * Returns whether a folder can be shown; otherwise the view has an empty one. It may have disappeared since the start, and a folder that
 * this account may not read is marked as absent.
 */
function isThere(plan: ViewPlan, top: string): boolean {
  const owned = plan.owned === null ? null : kindOf(join(plan.owned, 'top', top));
  return kindOf(`/${top}`) === 'directory' && (owned === null || owned === 'directory');
}

/** Hides a path: an empty read-only file system covers a folder, /dev/null a file. */
function cover(path: string, mount: Mount): void {
  const kind = kindOf(path);
  if (kind === 'directory') mount(['-t', 'tmpfs', '-o', 'ro,size=4k,mode=755', 'tmpfs', path]);
  else if (kind !== null && kind !== 'link') mount(['--bind', '/dev/null', path]);
}

function devices(root: string, mount: Mount): void {
  const dev = join(root, 'dev');
  mount(['-t', 'tmpfs', '-o', 'mode=755,nosuid', 'tmpfs', dev]);
  for (const name of DEVICES) {
    writeFileSync(join(dev, name), '');
    mount(['--bind', `/dev/${name}`, join(dev, name)]);
  }
  for (const name of ['shm', 'pts']) mkdirSync(join(dev, name));
  mount(['-t', 'tmpfs', '-o', 'mode=1777,nosuid,nodev', 'tmpfs', join(dev, 'shm')]);
  mount(['-t', 'devpts', '-o', 'newinstance,ptmxmode=0666,mode=0620,nosuid,noexec', 'devpts', join(dev, 'pts')]);
  // Path at which programs open new terminals.
  symlinkSync('pts/ptmx', join(dev, 'ptmx'));
}

function proc(root: string, nested: boolean, mount: Mount): void {
  const path = join(root, 'proc');
  mount(['-t', 'proc', '-o', 'nosuid,nodev,noexec', 'proc', path]);
  const readOnly = (from: string, to: string) => {
    mount(['--bind', from, to]);
    mount(['-o', 'remount,bind,ro,nosuid,nodev,noexec', to]);
  };
  if (nested) return;
  for (const name of PROC_READ_ONLY.map((name) => join(path, name))) if (existsSync(name)) readOnly(name, name);
  for (const name of PROC_HIDDEN.map((name) => join(path, name)))
    if (existsSync(name)) mount(['--bind', '/dev/null', name]);
}

function makeFolders(plan: ViewPlan): void {
  const owner = ownerOf(plan);
  for (const folder of plan.folders) {
    if (kindOf(resolveInRoot(plan.root, folder)) !== null) continue;
    const made = makeInRoot(plan.root, folder);
    if (owner !== null) chownSync(made, owner, owner);
  }
}

/** Shows a folder or a file of the machine at a path of the view; links in the view are resolved within it. */
function bind(root: string, { from, to, readOnly }: Bind, mount: Mount): void {
  const target = resolveInRoot(root, to);
  if (kindOf(from) === 'directory') mkdirSync(target, { recursive: true });
  else if (kindOf(target) === null) {
    makeInRoot(root, join(to, '..'));
    writeFileSync(target, '');
  }
  mount(['--bind', from, target]);
  if (readOnly) mount(['-o', 'remount,bind,ro,nosuid', target]);
}

/** Writes the resolver file, which on the machine is often a link into /run; views do not share that. */
function provideResolver(root: string, content: string): void {
  const target = resolveInRoot(root, '/etc/resolv.conf');
  mkdirSync(join(target, '..'), { recursive: true });
  writeFileSync(target, content);
}

/** Covers the outer tree except the machine's programs and the view: a process that leaves its root would see it. */
export function coverOuterTree(plan: ViewPlan, mount: Mount): void {
  const kept = new Set(['usr', 'bin', 'sbin', ...readdirSync('/').filter((name) => name.startsWith('lib'))]);
  const names = readdirSync('/').filter((name) => !kept.has(name) && name !== 'proc' && `/${name}` !== plan.anchor);
  // Before /dev is covered, because /dev/null covers files.
  for (const path of plan.hidden) cover(path, mount);
  for (const name of names) if (kindOf(`/${name}`) === 'directory') cover(`/${name}`, mount);
  // The creation of a nested user namespace needs the /proc of these namespaces; the machine's settings in it stay read-only for us.
  if (plan.nested) mount(['-t', 'proc', '-o', 'nosuid,nodev,noexec', 'proc', '/proc']);
  else cover('/proc', mount);
}
