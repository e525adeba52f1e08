import { readdirSync } from 'node:fs';
import { readStat, sendSignal, type ProcessStat } from '#runtimes/tools/shim/identity.ts';

/** Processes of the machine by their pids. */
export type Processes = ReadonlyMap<number, ProcessStat>;

/** Returns a process and all its descendants, among all processes or those that were read before. */
export const processTree = (pid: number, all: Processes = readProcesses()): number[] => below([pid], all);

/**
 * Ends a process that leads a session (`detached`) with all its descendants, even if the process itself has ended. `isReaped` means that it
 * has, and that its pid may belong to another process by now.
 */
export function endSession(leader: number, isReaped: boolean): void {
  if (process.platform !== 'linux') return void sendSignal(-leader, 'SIGKILL');
  const all = readProcesses();
  // The kernel reuses a pid only after the session of that id is gone.
  if (isReaped && all.has(leader)) return;
  const members = [...all].filter(([pid, { session }]) => pid === leader || session === leader).map(([pid]) => pid);
  const tree = below(members, all);
  sendSignal(-leader, 'SIGKILL');
  for (const pid of tree) sendSignal(pid, 'SIGKILL');
}

/** Reads all processes of the machine. */
export function readProcesses(): Processes {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const stats = pids.map((name) => [Number(name), readStat(Number(name))] as const);
  return new Map(stats.filter((entry): entry is [number, ProcessStat] => entry[1] !== null));
}

/** Returns processes and all their descendants, each once. */
function below(roots: readonly number[], all: Processes): number[] {
  const children = Map.groupBy(all, ([, { parent }]) => parent);
  const tree = new Set(roots);
  for (const pid of tree) for (const [child] of children.get(pid) ?? []) tree.add(child);
  return [...tree];
}
