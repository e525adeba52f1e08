import { listReported } from '#deployments/queue/queries.ts';
import type { Finding } from '#kernel/finding.ts';
import { askDatabase } from '#platform/database/inspect.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Looks for what the watchdog of the queue has reported. Starts nothing. */
export async function inspectQueue(settings: Settings): Promise<Finding> {
  const found = await askDatabase(settings, listReported);
  const name = 'queue';
  if (typeof found === 'string') return { name, state: 'ok', found: `not looked at: ${found}`, advice: [] };
  if (found.length === 0) return { name, state: 'ok', found: 'nothing stands still', advice: [] };
  const what = found.length === 1 ? '1 request stands still' : `${found.length} requests stand still`;
  return { name, state: 'missing', found: what, advice: found.map(({ message }) => message) };
}
