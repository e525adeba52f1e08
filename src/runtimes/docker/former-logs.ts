import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { FormerLogs, type FormerLogLimits } from '#runtimes/tools/former-logs.ts';
import { MOST_KEPT } from '#runtimes/tools/packed-log.ts';
import { findInstance, removeInstance, type Instance } from './instances.ts';
import { LABEL } from './labels.ts';
import { lastLines } from './logs.ts';
import type { DockerNode } from './node.ts';
import { timeOf } from './run-ends.ts';

/** Time limit in milliseconds of reading a log before its container is removed. */
const READ_MS = 30_000;

/** Returns the logs of former instances in a folder of this machine, one folder in it for each service. */
export const formerLogsIn = (
  folder: string,
  limits: FormerLogLimits | undefined,
  log: (line: string) => void,
): FormerLogs =>
  new FormerLogs(
    limits
      ? {
          limits,
          folderOf: (serviceId) => join(folder, serviceId),
          services: () =>
            readdir(folder).catch((error: NodeJS.ErrnoException) => {
              if (error.code === 'ENOENT') return [];
              throw error;
            }),
          log,
        }
      : null,
  );

/** Removes an instance and keeps its log: the engine deletes the log with the container. `tell` receives why it could not be kept. */
export async function retireInstance(node: DockerNode, id: string, tell: (line: string) => void): Promise<void> {
  const instance = await findInstance(node, id);
  if (instance) await keepLog(node, instance, tell);
  await removeInstance(node, id);
}

/** Keeps the log of an instance whose container is about to be removed. */
const keepLog = (node: DockerNode, instance: Instance, tell: (line: string) => void): Promise<void> =>
  node.formerLogs.keep(
    {
      serviceId: instance.labels[LABEL.service]!,
      name: instance.name,
      generation: instance.generation,
      key: instance.id.slice(0, 12),
      lastRunFrom: timeOf(instance.state.StartedAt) === null ? null : new Date(instance.state.StartedAt).toISOString(),
    },
    () => lastLines(node, instance, MOST_KEPT.lines, AbortSignal.timeout(READ_MS)),
    tell,
  );
