import { setTimeout as sleep } from 'node:timers/promises';
import type { Instances } from '#runtimes/host/instances.ts';
import { instanceName, type InstanceKey } from '#runtimes/host/layout.ts';
import { usage } from '#runtimes/host/processes.ts';
import { processTree, readProcesses, type Processes } from '#runtimes/tools/shim/index.ts';
import type { InstanceMetrics, WorkloadSpec } from '#runtimes/runtime.ts';

/** Milliseconds over which CPU is measured. */
const WINDOW_MS = 200;
const TICKS = 100;
const MIB = 2 ** 20;

/** Milliseconds for which the processes of the machine are not read again: services are measured several at a time. */
const RECENT_MS = 50;
let recent: { at: number; processes: Processes } | undefined;

function recentProcesses(): Processes {
  const at = performance.now();
  if (!recent || at - recent.at > RECENT_MS) recent = { at, processes: readProcesses() };
  return recent.processes;
}

/** Measures CPU and memory of running instances from /proc. Empty on systems without it. */
export async function measure(
  instances: Instances,
  keys: InstanceKey[],
  { cpuMilli: cpuLimitMilli, memoryMib }: WorkloadSpec['resources'],
): Promise<InstanceMetrics[]> {
  if (process.platform !== 'linux') return [];
  const running = keys.flatMap((at) => {
    const shim = instances.shim(at);
    if (!shim?.running) return [];
    const { process, startedAt, restarts } = shim.state;
    return [{ at, pid: process!.pid, startedAt, restarts }];
  });
  const before = running.map(({ pid }) => usage(processTree(pid, recentProcesses())));
  const start = performance.now();
  await sleep(WINDOW_MS);
  const limits = { cpuLimitMilli, memoryLimitBytes: memoryMib * MIB };
  return running.map(({ at, pid, startedAt, restarts }, n) => {
    const now = usage(processTree(pid, recentProcesses()));
    const seconds = (performance.now() - start) / 1000;
    const cpuMilli = Math.max(0, Math.round(((now.ticks - before[n]!.ticks) / TICKS / seconds) * 1000));
    const { memoryBytes } = now;
    const cpuMs = (now.ticks / TICKS) * 1000;
    const measuredAt = new Date().toISOString();
    return { instance: instanceName(at), cpuMilli, cpuMs, memoryBytes, ...limits, startedAt, restarts, at: measuredAt };
  });
}
