import { restore } from '#app/restore.ts';
import { Progress } from '#cli/progress.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Restores a backup and says what state the installation is in. */
export async function restoreCommand(settings: Settings, file: string): Promise<void> {
  const progress = new Progress();
  const manifest = await restore(settings, file, (text) => progress.show(text)).finally(() => progress.clear());
  const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
  console.log(
    [
      `Restored ${rows} rows of ${manifest.tables.length} tables, as of ${manifest.takenAt}.`,
      'The installation is read-only: `quarterdeck start` answers reads, and nothing is deployed, scheduled or sent.',
    ].join('\n'),
  );
}
