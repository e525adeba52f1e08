import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { isGone, readStat } from '#runtimes/tools/shim/identity.ts';

/** Returns CPU ticks and resident bytes of a process tree. */
export function usage(pids: readonly number[]): { ticks: number; memoryBytes: number } {
  const stats = pids.map(readStat).filter((stat) => stat !== null);
  return {
    ticks: stats.reduce((sum, stat) => sum + stat.ticks, 0),
    memoryBytes: stats.reduce((sum, stat) => sum + stat.residentPages * 4096, 0),
  };
}

/** Returns the TCP ports of the machine's network on which one of the processes listens. Empty if there is no /proc. */
export function listeningPorts(pids: readonly number[]): Set<number> {
  if (process.platform !== 'linux') return new Set();
  const ports = listeningInodes();
  const inodes = new Set(pids.flatMap(socketInodes));
  return new Set([...ports].filter(([inode]) => inodes.has(inode)).map(([, port]) => port));
}

/** Returns the port of each listening TCP socket by its inode. */
function listeningInodes(): Map<string, number> {
  const found = new Map<string, number>();
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of readOrEmpty(file).split('\n').slice(1)) {
      const fields = line.trim().split(/\s+/);
      if (fields[3] === '0A') found.set(fields[9]!, Number.parseInt(fields[1]!.split(':').at(-1)!, 16));
    }
  }
  return found;
}

function socketInodes(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      const match = /^socket:\[(\d+)\]$/.exec(linkOrEmpty(`/proc/${pid}/fd/${fd}`));
      return match ? [match[1]!] : [];
    });
  } catch (error) {
    // The process ended, or it is a helper with another account and thus not the workload.
    if (isGone(error) || (error as NodeJS.ErrnoException).code === 'EACCES') return [];
    throw error;
  }
}

function linkOrEmpty(path: string): string {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (isGone(error)) return '';
    throw error;
  }
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isGone(error)) return '';
    throw error;
  }
}
