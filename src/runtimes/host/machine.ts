import { constants, existsSync, mkdirSync, readFileSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { runCommand } from '#runtimes/tools/command.ts';
import { findProgram, mayUse } from '#runtimes/tools/find-program.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { makeSkeleton } from '#runtimes/host/skeleton.ts';
import { workFolder } from '#runtimes/tools/work-folders.ts';
import { isWithin, kindOf } from '#runtimes/host/view/root-path.ts';
import { unshareArguments, type Tools, type ViewPlan } from '#runtimes/host/view/plan.ts';

/** Top-level folders of the machine that a view shows if they exist, besides `lib*`. Homes and mounts are excluded. */
const TOPS = ['usr', 'bin', 'sbin', 'etc', 'opt', 'var', 'srv', 'nix'];
/** Keys and data of the machine's own services that a build could read, because it runs as the view's root. */
const PRIVATE = [
  '/etc/ssh',
  '/etc/ssl/private',
  '/etc/kubernetes',
  '/var/lib/docker',
  '/var/lib/containerd',
  '/var/lib/kubelet',
  '/var/lib/rancher',
  '/var/lib/postgresql',
  '/var/lib/mysql',
  '/var/spool',
  '/var/backups',
];

const ENTER_PROGRAM = new URL(import.meta.url.endsWith('.ts') ? './view/enter.ts' : './view/enter.js', import.meta.url)
  .pathname;

/** Capabilities of this machine for the runtime, determined by trying. */
export interface Machine {
  mode: 'namespaces' | 'plain';
  /** Reason for the mode `plain`; empty otherwise. */
  reason: string;
  asRoot: boolean;
  tools: Tools;
  tops: string[];
  /** Path of the folder below the root of every view (`skeleton.ts`); empty in the mode `plain`. */
  skeleton: string;
  /** Path of the layer of `owned-folders.ts`; null if it is not needed. */
  owned: string | null;
  hidden: string[];
  anchor: string;
  resolv: string | null;
  /** Resolver file for instances with their own network, which the machine's resolver (127.0.0.53) does not answer. */
  outsideResolv: string | null;
  /** Folder of Node's compiled code for `enter.ts` and shims. */
  compileCache: string;
}

export interface MachineOptions {
  dataDir: string;
  mode: 'auto' | 'plain';
  /** Further folders and files to hide from workloads. */
  hidden: string[];
}

/** Determines what works here: namespaces with a view in which a program runs without capabilities, or else plain folders. */
export async function findMachine(options: MachineOptions): Promise<Machine> {
  const tools = await findTools();
  const asRoot = process.getuid?.() === 0;
  const machine: Machine = {
    mode: 'plain',
    reason: '',
    asRoot,
    owned: asRoot ? null : join(options.dataDir, 'host', 'owned'),
    tools: tools as Tools,
    tops: process.platform === 'linux' ? machineTops(options.dataDir) : [],
    skeleton: '',
    hidden: hiddenPaths(options),
    anchor: findAnchor(options.dataDir),
    resolv: foreignResolver(),
    outsideResolv: outsideResolver(),
    compileCache: join(options.dataDir, 'host', 'compiled'),
  };
  if (options.mode === 'plain') return { ...machine, reason: 'it was chosen' };
  if (process.platform !== 'linux') return { ...machine, reason: `${process.platform} has no namespaces` };
  const missing = (['mount', 'unshare', 'setpriv', 'nsenter'] as const).filter((name) => tools[name] === null);
  if (missing.length) return { ...machine, reason: `${missing.join(', ')} (util-linux) is not installed` };
  const way = dirname(options.dataDir).slice(1);
  const below = join(options.dataDir, 'host');
  machine.skeleton = makeSkeleton(below, machine.tops, isShown(way.split('/')[0]!) ? way : null);
  const problem = await tryView({ ...machine, mode: 'namespaces' }, below);
  return problem === null ? { ...machine, mode: 'namespaces' } : { ...machine, reason: problem };
}

/** Length limit of the reason why namespaces are missing, in characters. */
const MAX_REASON = 600;

/** Runs a program in a view as an instance would; returns null if it works, otherwise the reason. */
async function tryView(machine: Machine, directory: string): Promise<string | null> {
  const place = workFolder(join(directory, `trial-${randomUUID()}`));
  try {
    const argv = ['/usr/bin/env', 'true'];
    const account = { kind: 'instance', uid: machine.asRoot ? serviceAccount('trial') : NESTED_UID } as const;
    const plan = viewPlan(machine, place, { action: { kind: 'run', argv, env: {}, cwd: '/', account } });
    const result = await runCommand(...enterCommand(machine, plan, place), { timeoutSeconds: 20 });
    // The first line says what was tried; hints of `mount` follow.
    return result.exitCode === 0
      ? null
      : result.stderr.trim().split('\n', 1)[0]!.slice(0, MAX_REASON) || 'unshare failed';
  } finally {
    removeTree(place);
  }
}

/** Account of an ordinary user's instances inside of their user namespace. */
export const NESTED_UID = 1000;
/** Accounts of services: far above what distributions give to people, services and subordinate ids of rootless containers. */
const FIRST_UID = 1_900_000_000;

/** Returns the account of a service, derived from its id (FNV-1a), so that nothing has to be stored. */
export function serviceAccount(serviceId: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(serviceId)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return FIRST_UID + (hash % 100_000_000);
}

/** Returns the plan of a view with its private parts in `place`; writes nothing. */
export function viewPlan(
  machine: Machine,
  place: string,
  given: Partial<ViewPlan> & Pick<ViewPlan, 'action'>,
): ViewPlan {
  return {
    root: join(place, 'root'),
    tops: machine.tops,
    skeleton: machine.skeleton,
    layers: [],
    owned: machine.owned !== null && existsSync(machine.owned) ? machine.owned : null,
    upper: join(place, 'upper'),
    work: join(place, 'work'),
    from: null,
    hidden: machine.hidden,
    binds: [],
    folders: [],
    node: realpathSync(process.execPath),
    resolv: machine.resolv,
    hostname: 'quarterdeck',
    cgroups: [],
    network: 'outer',
    anchor: machine.anchor,
    nested: !machine.asRoot,
    tools: machine.tools,
    ...given,
  };
}

/** Writes the plan and returns the program and arguments that execute it. */
export function enterCommand(machine: Machine, plan: ViewPlan, place: string): [string, string[]] {
  mkdirSync(plan.root, { recursive: true, mode: 0o700 });
  const file = join(place, 'plan.json');
  writeFileSync(file, JSON.stringify(plan), { mode: 0o600 });
  const node = [realpathSync(process.execPath), '--no-warnings', ENTER_PROGRAM, file];
  return [machine.tools.unshare, [...unshareArguments(plan), ...node]];
}

async function findTools(): Promise<{ [K in keyof Tools]: string | null }> {
  const names = ['mount', 'unshare', 'setpriv', 'nsenter', 'env', 'ip', 'hostname'] as const;
  const tools = Object.fromEntries(names.map((name) => [name, findProgram(name)])) as {
    [K in keyof Tools]: string | null;
  };
  if (tools.env && (await runCommand(tools.env, ['--default-signal=PIPE', 'true'])).exitCode !== 0) tools.env = null;
  return tools;
}

/**
 * Returns the folders that views show, relative to `/`. Links (`/bin` -> `usr/bin`) are omitted and become links in the view. Overlayfs
 * refuses a layer inside another one: if the data directory lies in a folder (`/var/lib/...`), the siblings along its path replace that
 * folder.
 */
function machineTops(dataDir: string): string[] {
  const shown = readdirSync('/').filter(isShown);
  return shown.flatMap((name) => beside(name, dataDir));
}

function beside(path: string, dataDir: string): string[] {
  if (
    kindOf(`/${path}`) !== 'directory' ||
    `/${path}` === dataDir ||
    !mayUse(`/${path}`, constants.R_OK | constants.X_OK)
  )
    return [];
  if (!isWithin(`/${path}`, dataDir)) return [path];
  return readdirSync(`/${path}`).flatMap((name) => beside(`${path}/${name}`, dataDir));
}

/**
 * Returns the paths to hide from workloads among the shown top-level folders: the data directory, the home, and the machine's keys. A
 * top-level folder itself cannot be hidden, single files in it can.
 */
function hiddenPaths({ dataDir, hidden }: MachineOptions): string[] {
  const paths = [dataDir, homedir(), ...hidden, ...PRIVATE].filter((path) => existsSync(path));
  const real = paths.map((path) => realpathSync(path)).filter((path) => isShown(path.split('/')[1]!));
  return [...new Set(real)].filter((path) => path.split('/').length > 2);
}

/** Returns whether views show a top-level entry of the machine. */
const isShown = (name: string): boolean => TOPS.includes(name) || /^lib(32|64|x32)?$/.test(name);

/** Returns an existing folder that holds neither the data directory nor programs; the finished view is mounted on it. */
function findAnchor(dataDir: string): string {
  const usable = ['/mnt', '/media', '/srv', '/opt', '/home', '/tmp'].filter((path) => kindOf(path) === 'directory');
  return usable.find((path) => !isWithin(path, dataDir)) ?? '/mnt';
}

/** Returns the resolver's content if its file links to a folder that views do not show; null if the file itself is shown. */
function foreignResolver(): string | null {
  if (kindOf('/etc/resolv.conf') !== 'link' || !existsSync('/etc/resolv.conf')) return null;
  return readFileSync('/etc/resolv.conf', 'utf8');
}

/** Returns the upstream name servers of systemd-resolved; null if the machine's own file works in every network. */
function outsideResolver(): string | null {
  const upstream = '/run/systemd/resolve/resolv.conf';
  if (!existsSync('/etc/resolv.conf') || !existsSync(upstream)) return null;
  return /^nameserver\s+127\./m.test(readFileSync('/etc/resolv.conf', 'utf8')) ? readFileSync(upstream, 'utf8') : null;
}
