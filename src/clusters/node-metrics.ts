import { arch, availableParallelism, cpus, freemem, loadavg, platform, totalmem } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NodeMetrics, NodeUsage } from '#resources/cluster/index.ts';

/** Measures processor and memory of this machine. */
export const measureNode = (nodeId: string): NodeMetrics => ({
  at: new Date(),
  instance: nodeId,
  cpuCores: availableParallelism(),
  load: loadavg() as [number, number, number],
  memoryTotalBytes: totalmem(),
  memoryAvailableBytes: freemem(),
});

/** Milliseconds over which the use of the processor is measured. */
const WINDOW_MS = 250;

/** Returns the milliseconds for which all processors together were not idle. */
const busyMs = (): number =>
  cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0);

/** Measures the use of this machine. */
export async function measureNodeUsage(nodeId: string): Promise<NodeUsage> {
  const [before, start] = [busyMs(), performance.now()];
  await sleep(WINDOW_MS);
  const cpuMilli = Math.max(0, Math.round(((busyMs() - before) / (performance.now() - start)) * 1000));
  const architecture = arch() === 'x64' ? 'amd64' : arch();
  return { ...measureNode(nodeId), cpuMilli, architecture, operatingSystem: platform() };
}
