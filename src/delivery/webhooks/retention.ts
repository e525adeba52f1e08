import { deleteDeliveriesBefore, expireDeliveriesBefore } from '#delivery/webhooks/queries.ts';
import type { Platform } from '#platform/context.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';

const KEPT_DAYS = 30;
const AT_ONCE = 1_000;
const DAY_MS = 86_400_000;
/** Milliseconds after which a delivery is given up; longer than all of its attempts take. */
const EXPIRY_MS = DAY_MS;

/** Removes deliveries that are over and older than 30 days, with their attempts; answers how many. For the scheduler. */
export const removeOldDeliveries = (platform: Platform): Promise<number> =>
  inBatches(platform, KEPT_DAYS * DAY_MS, deleteDeliveriesBefore);

/** Gives up deliveries that could not be made for a day; answers how many. For the scheduler. */
export const expireDeliveries = (platform: Platform): Promise<number> =>
  inBatches(platform, EXPIRY_MS, expireDeliveriesBefore);

async function inBatches({ db, clock }: Platform, ageMs: number, work: typeof deleteDeliveriesBefore): Promise<number> {
  const before = new Date(clock.now().getTime() - ageMs);
  let total = 0;
  for (;;) {
    const done = await work(db, before, AT_ONCE);
    total += done;
    if (done < AT_ONCE) return total;
  }
}

/** Recurring tasks of webhooks. */
export const WEBHOOK_TASKS: RecurringTask[] = [
  {
    name: 'webhook-deliveries',
    everySeconds: 3600,
    run: async (platform) => {
      await expireDeliveries(platform);
      await removeOldDeliveries(platform);
    },
  },
];
