import { backUp } from '#app/restore.ts';
import { print } from '#cli/print.ts';
import { Progress } from '#cli/progress.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Writes a backup and says what is in it and what is not. */
export async function backupCommand(settings: Settings, file: string): Promise<void> {
  const progress = new Progress();
  const { manifest, bytes } = await backUp(settings, file, (text) => progress.show(text)).finally(() =>
    progress.clear(),
  );
  const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
  print(
    [
      `Backed up ${rows} rows of ${manifest.tables.length} tables, as of ${manifest.takenAt}, into ${file} (${megabytes(bytes)}).`,
      `The key of the vault is not in it: keep the key file elsewhere (${manifest.vaultKeys.join(', ')}). Without it no secret of the backup can be read.`,
      'Nor are the volumes of services, the images, and what lies in the data directory.',
    ].join('\n'),
  );
}

const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`;
