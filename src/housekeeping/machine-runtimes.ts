import type { Platform } from '#platform/context.ts';
import type { Runtime, MachineRuntimes } from '#runtimes/runtime.ts';

/** Returns the runtimes of the clusters of a machine, as far as they can be used now. */
export async function runtimesOfMachine(
  platform: Pick<Platform, 'db' | 'log'>,
  runtimes: MachineRuntimes,
  nodeId: string,
): Promise<Runtime[]> {
  const rows = await platform.db
    .selectFrom('cluster')
    .select('runtime')
    .distinct()
    .where('node_id', '=', nodeId)
    .execute();
  const found: Runtime[] = [];
  for (const { runtime } of rows)
    try {
      found.push(await runtimes.onMachine(runtime));
    } catch (error) {
      platform.log.info({ err: error, runtime }, 'a runtime cannot be looked after now');
    }
  return found;
}
