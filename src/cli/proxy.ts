import { createQuietLog } from '#platform/telemetry/log.ts';
import { createRuntimes } from '#app/runtimes.ts';
import { print } from '#cli/print.ts';
import { answersReady } from '#cli/running.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Ends the proxy of the data directory, which outlives the service. Refused while the service runs: it would start another. */
export async function stopProxyCommand(settings: Settings): Promise<void> {
  if (await answersReady(settings))
    throw new Error('The service runs, and starts its proxy again: stop the service first.');
  await createRuntimes(settings, 'none', createQuietLog()).endProxy();
  print('The proxy has ended.');
}
