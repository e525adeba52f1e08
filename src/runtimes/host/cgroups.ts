import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Limits of a group of processes. */
interface Limits {
  cpuMilli: number;
  memoryMib: number;
}

/** Control groups that limit processes. `usable` is false if this account may not create any: then nothing is limited. */
export interface Cgroups {
  readonly usable: boolean;
  /** Creates a group or changes its limits; returns the files that a process joins by writing 0. */
  make(name: string, limits: Limits): string[];
  /** Returns the files by which processes join an existing group. */
  files(name: string): string[];
  /** Returns whether the kernel killed a process of the group because it exceeded its memory limit. */
  ranOutOfMemory(name: string): boolean;
  /** Removes a group without processes. */
  remove(name: string): void;
}

const NONE: Cgroups = {
  usable: false,
  make: () => [],
  files: () => [],
  ranOutOfMemory: () => false,
  remove: () => undefined,
};
/** Period of the CPU quota, in microseconds. */
const PERIOD = 100_000;

/** Finds out by trying which control groups can be created. `parent` names the group that holds the runtime's groups. */
export function findCgroups(parent: string, processes = 1024): Cgroups {
  if (process.platform !== 'linux') return NONE;
  for (const open of [openUnified, openLegacy]) {
    try {
      const cgroups = open(parent, processes);
      if (!cgroups) continue;
      cgroups.make('trial', { cpuMilli: 100, memoryMib: 64 });
      cgroups.remove('trial');
      return cgroups;
    } catch (error) {
      if (
        !['EACCES', 'EPERM', 'EROFS', 'ENOENT', 'EBUSY', 'EOPNOTSUPP', 'EINVAL'].includes(
          (error as NodeJS.ErrnoException).code ?? '',
        )
      )
        throw error;
    }
  }
  return NONE;
}

const cpuQuota = (limits: Limits) => Math.max(1000, Math.round((limits.cpuMilli / 1000) * PERIOD));
const memoryBytes = (limits: Limits) => String(limits.memoryMib * 2 ** 20);

/** Opens version 2: one tree. A group with processes cannot delegate controllers, so the runtime's groups stand below the visible root. */
function openUnified(parent: string, processes: number): Cgroups | null {
  const root = '/sys/fs/cgroup';
  if (!existsSync(join(root, 'cgroup.controllers'))) return null;
  const folder = join(root, parent);
  const limitsProcesses = readFileSync(join(root, 'cgroup.controllers'), 'utf8').split(/\s+/).includes('pids');
  const open = () => {
    for (const at of [root, folder]) {
      mkdirSync(at, { recursive: true });
      writeFileSync(join(at, 'cgroup.subtree_control'), `+cpu +memory${limitsProcesses ? ' +pids' : ''}`);
    }
  };
  open();
  const files = (name: string) => [join(folder, name, 'cgroup.procs')];
  return {
    usable: true,
    files,
    make(name, limits) {
      if (!existsSync(folder)) open();
      const group = join(folder, name);
      mkdirSync(group, { recursive: true });
      writeFileSync(join(group, 'memory.max'), memoryBytes(limits));
      writeFileSync(join(group, 'cpu.max'), `${cpuQuota(limits)} ${PERIOD}`);
      if (limitsProcesses) writeFileSync(join(group, 'pids.max'), String(processes));
      return files(name);
    },
    ranOutOfMemory: (name) => countsKills(join(folder, name, 'memory.events')),
    remove: (name) => removeGroups([join(folder, name)], [folder]),
  };
}

/** Opens version 1: a tree for each controller. */
function openLegacy(parent: string, processes: number): Cgroups | null {
  const own = legacyFolders();
  if (!own) return null;
  const folders = [own.memory, own.cpu, ...own.pids].map((folder) => join(folder, parent));
  const files = (name: string) => folders.map((folder) => join(folder, name, 'cgroup.procs'));
  return {
    usable: true,
    files,
    make(name, limits) {
      const groups = folders.map((folder) => join(folder, name));
      const [memory, cpu, pids] = groups as [string, string, string | undefined];
      for (const group of groups) mkdirSync(group, { recursive: true });
      writeFileSync(join(memory, 'memory.limit_in_bytes'), memoryBytes(limits));
      writeFileSync(join(cpu, 'cpu.cfs_period_us'), String(PERIOD));
      writeFileSync(join(cpu, 'cpu.cfs_quota_us'), String(cpuQuota(limits)));
      if (pids !== undefined) writeFileSync(join(pids, 'pids.max'), String(processes));
      return files(name);
    },
    ranOutOfMemory: (name) => countsKills(join(folders[0]!, name, 'memory.oom_control')),
    remove: (name) =>
      removeGroups(
        folders.map((folder) => join(folder, name)),
        folders,
      ),
  };
}

/** Returns this process's folders in the controllers' trees; `pids` is empty if that controller is absent. */
function legacyFolders(): { memory: string; cpu: string; pids: string[] } | null {
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '));
  const groups = readFileSync('/proc/self/cgroup', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const find = (controller: string) => {
    const mount = mounts.find(([, , type, options]) => type === 'cgroup' && options!.split(',').includes(controller));
    const group = groups.find(([, controllers]) => controllers?.split(',').includes(controller));
    if (!mount || !group) return null;
    const folder = join(mount[1]!, group[2]!);
    // In a container the path may be relative to the machine's tree, of which only a part is mounted.
    return existsSync(folder) ? folder : mount[1]!;
  };
  const [memory, cpu] = [find('memory'), find('cpu')];
  const pids = find('pids');
  return memory && cpu ? { memory, cpu, pids: pids ? [pids] : [] } : null;
}

/** Returns whether a file counts killed processes; both versions have a line `oom_kill <count>`. */
function countsKills(file: string): boolean {
  return existsSync(file) && /^oom_kill [1-9]/m.test(readFileSync(file, 'utf8'));
}

function removeGroups(groups: readonly string[], parents: readonly string[]): void {
  for (const group of groups) removeGroup(group);
  for (const parent of parents)
    if (existsSync(parent) && readdirSync(parent, { withFileTypes: true }).every((entry) => !entry.isDirectory()))
      removeGroup(parent);
}

function removeGroup(group: string): void {
  try {
    rmdirSync(group);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // Processes that are just ending keep a group busy: the next removal of the service, or of its parent, removes it.
    if (code !== 'ENOENT' && code !== 'EBUSY' && code !== 'ENOTEMPTY') throw error;
  }
}
