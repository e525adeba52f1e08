import { setTimeout as sleep } from 'node:timers/promises';
import type { Instances } from '#runtimes/host/instances.ts';
import { instanceName, type InstanceKey } from '#runtimes/host/layout.ts';
import { usage } from '#runtimes/host/processes.ts';
import { processTree } from '#runtimes/tools/shim/index.ts';
import type { InstanceMetrics } from '#runtimes/runtime.ts';

/** Time over which CPU is measured, and the clock ticks of a second (fixed in Linux' interface). */
const WINDOW_MS = 200;
const TICKS = 100;

/** CPU and memory of instances that run, from /proc. Empty where there is none. */
export async function measure(instances: Instances, keys: InstanceKey[]): Promise<InstanceMetrics[]> {
  if (process.platform !== 'linux') return [];
  const running = keys.flatMap((at) => {
    const shim = instances.shim(at);
    return shim?.running ? [{ at, pid: shim.state.process!.pid }] : [];
  });
  const before = running.map(({ pid }) => usage(processTree(pid)));
  const start = performance.now();
  await sleep(WINDOW_MS);
  return running.map(({ at, pid }, n) => {
    const now = usage(processTree(pid));
    const seconds = (performance.now() - start) / 1000;
    const cpuMilli = Math.max(0, Math.round(((now.ticks - before[n]!.ticks) / TICKS / seconds) * 1000));
    return { instance: instanceName(at), cpuMilli, memoryBytes: now.memoryBytes, at: new Date().toISOString() };
  });
}
