import { newContext } from '#runtimes/contract/fixture.ts';
import type { Runtime } from '#runtimes/runtime.ts';

/** Ends everything of an installation on a runtime, with what the services of an environment share, whatever a test came to. */
export async function removeEverything(runtime: Runtime): Promise<void> {
  const found = (await runtime.list!()).map(({ identity }) => identity);
  for (const identity of found) await runtime.remove(identity, null, newContext());
  for (const identity of found) await runtime.removeEnvironment?.(identity);
}
