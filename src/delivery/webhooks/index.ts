import { BREAKER, type Breaker } from '#delivery/receivers/breaker.ts';
import { FairShare, SLOTS } from '#delivery/receivers/fair-share.ts';
import { ANSWER_MS, GRACE_MS, RETRY_SCHEDULE_MS } from '#delivery/receivers/schedule.ts';
import { attempt, giveBack } from '#delivery/webhooks/attempt.ts';
import { claimDue, type Claim } from '#delivery/webhooks/claims.ts';
import { fanOut } from '#delivery/webhooks/fan-out.ts';
import { renewDeliveries, WEBHOOK_REPORT } from '#delivery/webhooks/queries.ts';
import { OUTBOX_CHANNEL } from '#platform/events/outbox.ts';
import type { Platform } from '#platform/context.ts';
import type { HttpClient } from '#platform/http-client/index.ts';
import { WorkLoop } from '#platform/work/index.ts';

export { WEBHOOK_REPORT } from '#delivery/webhooks/queries.ts';
export { WEBHOOK_TASKS } from '#delivery/webhooks/retention.ts';

export interface WebhookDeliveryOptions {
  platform: Platform;
  nodeId: string;
  http: HttpClient;
  /** Times in ms, set by tests. */
  times?: Partial<Times>;
}

interface Times {
  /** Milliseconds that the receiver has to answer. */
  timeout: number;
  /** Milliseconds that a claim holds without being renewed. */
  lease: number;
  /** Milliseconds between looks without a nudge. */
  poll: number;
  /** Milliseconds for calls under way at a stop. */
  grace: number;
  schedule: readonly number[];
  breaker: Breaker;
}

const TIMES: Times = {
  timeout: ANSWER_MS,
  lease: 15_000,
  poll: 1_000,
  grace: GRACE_MS,
  schedule: RETRY_SCHEDULE_MS,
  breaker: BREAKER,
};

/**
 * Creates the loop that calls webhooks: it turns the outbox into deliveries and makes their attempts, at least once each, under an id that
 * stays.
 */
export function createWebhookDelivery({ platform, nodeId, http, times }: WebhookDeliveryOptions): WorkLoop<Claim> {
  const { timeout: timeoutMs, grace: graceMs, schedule: scheduleMs, breaker, lease, poll } = { ...TIMES, ...times };
  const parts = { platform, http, timeoutMs, graceMs, scheduleMs, breaker };
  const calls = new FairShare<Claim>(({ webhook_id }) => webhook_id);
  const loop: WorkLoop<Claim> = new WorkLoop(
    {
      name: WEBHOOK_REPORT.name,
      leaseSeconds: lease / 1000,
      slots: SLOTS,
      pollMs: poll,
      channel: OUTBOX_CHANNEL,
      prepare: async () => {
        // The outbox may hold more; deliveries are claimed in between.
        if ((await fanOut(platform)) > 0) loop.nudge();
      },
      claim: (_, request) => calls.claim(request, (some, busy) => claimDue(platform, some, busy, breaker)),
      renew: renewDeliveries,
      // After a failure, the call is made again when the lease has ended.
      giveBack: async (db, claim, stoppedBy) => {
        if (stoppedBy === 'order') await giveBack(db, claim);
      },
      run: (claim, held) => calls.carryOut(claim, () => attempt(parts, claim, held)),
      fields: ({ id, webhook_id: webhookId }) => ({ delivery: id, webhookId }),
    },
    { platform, nodeId },
  );
  return loop;
}
