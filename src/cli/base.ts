import { openBase, type Base } from '#app/install.ts';
import { createQuietLog } from '#platform/telemetry/log.ts';
import { Progress } from '#cli/progress.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Opens the installation for one command and closes it afterwards; a service that runs goes on. */
export async function withBase<T>(settings: Settings, work: (base: Base) => Promise<T>): Promise<T> {
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
