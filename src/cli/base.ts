import { openBase, type Base } from '#app/install.ts';
import { createQuietLog } from '#platform/telemetry/log.ts';
import { Progress } from '#cli/progress.ts';
import { readRecord, sentences } from '#platform/move/record.ts';
import type { Settings } from '#platform/settings/index.ts';

/**
 * Opens the installation for one command and closes it afterwards; a service that runs goes on. Throws Error if the installation is being
 * unpacked, as some of it is missing.
 */
export async function withBase<T>(settings: Settings, work: (base: Base) => Promise<T>): Promise<T> {
  const record = readRecord(settings.dataDir);
  if (record?.state === 'unpacking') throw new Error(`The installation is not complete: ${sentences(record)}`);
  const progress = new Progress();
  const base = await openBase(settings, createQuietLog(), (text) => progress.show(text)).finally(() =>
    progress.clear(),
  );
  try {
    return await work(base);
  } finally {
    await base.close();
  }
}
