import type { Database } from '#platform/database/index.ts';
import { newContext } from '#runtimes/contract/fixture.ts';
import type { Runtime } from '#runtimes/runtime.ts';

/**
 * Removes all workloads of an installation from a runtime, and what the services of an environment share. Tests call it whatever their
 * outcome.
 */
export async function removeEverything(runtime: Runtime): Promise<void> {
  const found = (await runtime.list!()).map(({ identity }) => identity);
  for (const identity of found) await runtime.remove(identity, null, newContext());
  for (const identity of found) await runtime.removeEnvironment?.(identity);
}

/** Removes the same, and the remains of environments whose workloads all ran to their end: no list shows these. */
export async function removeInstallation(runtime: Runtime, db: Database, installation: string): Promise<void> {
  await removeEverything(runtime);
  const environments = await db.selectFrom('environment').select('id').execute();
  for (const { id } of environments) await runtime.removeEnvironment?.({ installation, environmentId: id });
}
