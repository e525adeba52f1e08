import { deleteDeliveriesBefore } from '#delivery/webhooks/queries.ts';
import type { Platform } from '#platform/context.ts';

const KEPT_DAYS = 30;
const AT_ONCE = 1_000;
const DAY_MS = 86_400_000;

/** Removes deliveries that are over and older than 30 days, with their attempts; answers how many. For the scheduler. */
export async function removeOldDeliveries(platform: Platform): Promise<number> {
  const before = new Date(platform.clock.now().getTime() - KEPT_DAYS * DAY_MS);
  let total = 0;
  for (;;) {
    const removed = await deleteDeliveriesBefore(platform.db, before, AT_ONCE);
    total += removed;
    if (removed < AT_ONCE) return total;
  }
}
