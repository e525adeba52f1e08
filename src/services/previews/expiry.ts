import type { Context } from '#platform/context.ts';
import { setExpiry, type EnvironmentTarget } from '#resources/environment/index.ts';

const DAY_SECONDS = 24 * 3600;

/** Puts off the end of a preview: it is removed when nothing was heard of its pull request for the time of the settings. */
export async function expireIn(context: Context, { id, organizationId }: EnvironmentTarget): Promise<void> {
  await setExpiry(context.db, { organizationId }, id, context.settings.previewDays * DAY_SECONDS);
}
