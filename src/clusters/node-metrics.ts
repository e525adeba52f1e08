import { availableParallelism, freemem, loadavg, totalmem } from 'node:os';
import type { NodeMetrics } from '#resources/cluster/index.ts';

/** Measures processor and memory of this machine. */
export const measureNode = (nodeId: string): NodeMetrics => ({
  at: new Date(),
  instance: nodeId,
  cpuCores: availableParallelism(),
  load: loadavg() as [number, number, number],
  memoryTotalBytes: totalmem(),
  memoryAvailableBytes: freemem(),
});
