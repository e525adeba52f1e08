import { withBase } from '#cli/base.ts';
import { print } from '#cli/print.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Brings the database to this release, as `start` does, without serving. */
export async function migrateCommand(settings: Settings): Promise<void> {
  const applied = await withBase(settings, async (base) => base.migrated);
  if (applied.length === 0) print('The database is at this release: nothing to do.');
  else print(`Applied ${applied.length} migrations:\n${applied.map((name) => `  ${name}`).join('\n')}`);
}
