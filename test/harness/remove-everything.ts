import type { Database } from '#platform/database/index.ts';
import { newContext } from '#runtimes/contract/fixture.ts';
import type { Runtime } from '#runtimes/runtime.ts';

/** Ends everything of an installation on a runtime, with what the services of an environment share, whatever a test came to. */
export async function removeEverything(runtime: Runtime): Promise<void> {
  const found = (await runtime.list!()).map(({ identity }) => identity);
  for (const identity of found) await runtime.remove(identity, null, newContext());
  for (const identity of found) await runtime.removeEnvironment?.(identity);
}

/** The same, and what is left of the environments in which something only ran to its end: that is in no list. */
export async function removeInstallation(runtime: Runtime, db: Database, installation: string): Promise<void> {
  await removeEverything(runtime);
  const environments = await db.selectFrom('environment').select('id').execute();
  for (const { id } of environments) await runtime.removeEnvironment?.({ installation, environmentId: id });
}
