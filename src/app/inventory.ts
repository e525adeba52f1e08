import type { Base } from '#app/install.ts';
import { kubernetesClusters } from '#app/kubernetes.ts';
import { createRuntimes, type Runtimes } from '#app/runtimes.ts';
import type { Comparison } from '#clusters/drift.ts';
import { findUnknown, removeFound, takeInventory, type World } from '#clusters/inventory.ts';
import { NO_ROUTER } from '#runtimes/no-router.ts';

export const noRouter = async () => NO_ROUTER;
type OwnRouter = Runtimes['router'] | undefined;

/** Compares what runs with what the database has; starts no proxy. */
export const lookAtWorld = (base: Base): Promise<World> =>
  withRuntimes(base, noRouter, (runtimes) => takeInventory({ ...base, runtimes }));

/** Removes what the database does not know, of that only the services named where some are. Returns what was removed. */
export async function removeUnknown(base: Base, only?: string[]): Promise<Comparison['differences']> {
  const unknown = await withRuntimes(base, noRouter, (runtimes) => findUnknown({ ...base, runtimes }, only));
  // With the node's own proxy: routes of what is removed go with it.
  await withRuntimes(base, undefined, (runtimes) => removeFound({ ...base, runtimes }, unknown));
  return unknown;
}

/** Runs work with the runtimes of this machine, behind its own proxy unless a router is given. */
export async function withRuntimes<T>(base: Base, router: OwnRouter, use: (all: Runtimes) => Promise<T>) {
  const clusters = kubernetesClusters(base);
  const runtimes = createRuntimes(base.settings, base.installation.id, base.log, router, clusters);
  try {
    return await use(runtimes);
  } finally {
    await runtimes.close();
  }
}
