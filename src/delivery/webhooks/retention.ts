import { EXPIRY_HOURS, KEPT_DAYS } from '#delivery/receivers/schedule.ts';
import { deleteDeliveriesBefore, expireDeliveriesBefore } from '#delivery/webhooks/queries.ts';
import { inBatches } from '#platform/database/batches.ts';
import type { Platform } from '#platform/context.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';

const AT_ONCE = 1_000;
const HOUR_MS = 3_600_000;

/** Removes deliveries that are over and older than 30 days, with their attempts; answers how many. For the scheduler. */
export const removeOldDeliveries = (platform: Platform, signal?: AbortSignal): Promise<number> =>
  forOlder(platform, KEPT_DAYS * 24 * HOUR_MS, deleteDeliveriesBefore, signal);

/** Gives up deliveries that could not be made for a day; answers how many. For the scheduler. */
export const expireDeliveries = (platform: Platform, signal?: AbortSignal): Promise<number> =>
  forOlder(platform, EXPIRY_HOURS * HOUR_MS, expireDeliveriesBefore, signal);

function forOlder(
  { db, clock }: Platform,
  ageMs: number,
  work: typeof deleteDeliveriesBefore,
  signal?: AbortSignal,
): Promise<number> {
  const before = new Date(clock.now().getTime() - ageMs);
  return inBatches(AT_ONCE, signal, () => work(db, before, AT_ONCE));
}

/** Recurring tasks of webhooks. */
export const WEBHOOK_TASKS: RecurringTask[] = [
  {
    name: 'webhook-deliveries',
    everySeconds: 3600,
    run: async (platform, signal) => {
      await expireDeliveries(platform, signal);
      await removeOldDeliveries(platform, signal);
    },
  },
];
