import type { Base } from '#app/install.ts';
import { createRuntimes } from '#app/runtimes.ts';
import type { Comparison } from '#clusters/drift.ts';
import { findUnknown, removeFound, takeInventory, type World } from '#clusters/inventory.ts';
import { NO_ROUTER } from '#runtimes/no-router.ts';
import type { MachineRuntimes } from '#runtimes/runtime.ts';

/** Compares what runs with what the database has; starts no proxy. */
export const lookAtWorld = (base: Base): Promise<World> =>
  looking(base, (runtimes) => takeInventory({ ...base, runtimes }));

/** Removes what the database does not know, of that only the services named where some are. Returns what was removed. */
export async function removeUnknown(base: Base, only?: string[]): Promise<Comparison['differences']> {
  const unknown = await looking(base, (runtimes) => findUnknown({ ...base, runtimes }, only));
  // With the node's own proxy: routes of what is removed go with it.
  const runtimes = createRuntimes(base.settings, base.installation.id, base.log);
  try {
    await removeFound({ ...base, runtimes }, unknown);
  } finally {
    await runtimes.close();
  }
  return unknown;
}

async function looking<T>(base: Base, look: (runtimes: MachineRuntimes) => Promise<T>): Promise<T> {
  const runtimes = createRuntimes(base.settings, base.installation.id, base.log, async () => NO_ROUTER);
  try {
    return await look(runtimes);
  } finally {
    await runtimes.close();
  }
}
