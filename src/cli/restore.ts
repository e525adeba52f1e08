import { accept, restore } from '#app/restore.ts';
import { lookAtWorld } from '#app/inventory.ts';
import { withBase } from '#cli/base.ts';
import { print } from '#cli/print.ts';
import { Progress } from '#cli/progress.ts';
import { describeWorld } from '#cli/world.ts';
import type { Settings } from '#platform/settings/index.ts';

export interface RestoreOptions {
  accept?: true;
  applyMissing?: true;
  runWaiting?: true;
}

/** Restores a backup, or ends the read-only state that one left. */
export async function restoreCommand(settings: Settings, file: string | undefined, options: RestoreOptions) {
  if (options.accept && file === undefined) return acceptCommand(settings, options);
  if (options.accept || options.applyMissing || options.runWaiting || file === undefined)
    throw new Error(
      'Either `quarterdeck restore FILE`, or, when you have looked at what it made, `quarterdeck restore --accept`.',
    );
  const progress = new Progress();
  const { manifest, interrupted } = await restore(settings, file, (text) => progress.show(text)).finally(() =>
    progress.clear(),
  );
  const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
  print(
    [
      `Restored ${rows} rows of ${manifest.tables.length} tables, as of ${manifest.takenAt}.`,
      ...(interrupted > 0 ? [`${interrupted} deployments that were under way then are ended with an error.`] : []),
      'The installation is read-only: `quarterdeck start` answers reads, and nothing is deployed, scheduled or sent.',
      'When you have looked at it, end that with `quarterdeck restore --accept`.',
      '',
    ].join('\n'),
  );
  await withBase(settings, async (base) => print(describeWorld(await lookAtWorld(base))));
}

async function acceptCommand(settings: Settings, options: RestoreOptions): Promise<void> {
  await withBase(settings, async (base) => {
    const world = await lookAtWorld(base);
    const { cancelled, applied } = await accept(base, {
      applyMissing: options.applyMissing ?? false,
      runWaiting: options.runWaiting ?? false,
      worldEpoch: world.epoch,
    });
    print('The installation can be written again: services that run go on within a second.');
    if (cancelled > 0) print(`${cancelled} requests that waited when the backup was made are cancelled.`);
    if (applied > 0) print('What should run and does not is started within a minute.');
    print(describeWorld(world));
  });
}
