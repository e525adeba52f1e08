import { newOrderedId } from '#kernel/ids.ts';
import type { Breaker } from '#delivery/receivers/breaker.ts';
import type { Busy } from '#delivery/receivers/fair-share.ts';
import * as queries from '#delivery/webhooks/queries.ts';
import type { Platform } from '#platform/context.ts';
import type { ClaimRequest } from '#platform/work/index.ts';

/** Claim on a delivery, with the attempt that was opened for it. */
export interface Claim extends queries.ClaimedDelivery {
  attemptId: string;
}

/** Claims deliveries and opens an attempt for each. An attempt that a lost worker left open is closed as one without an answer. */
export const claimDue = (platform: Platform, request: ClaimRequest, busy: Busy, breaker: Breaker): Promise<Claim[]> =>
  platform.db.transaction().execute(async (db) => {
    const due = await queries.WEBHOOKS.chooseCalls(db, request, busy, breaker, {
      lockDue: queries.lockDue,
      receiverOf: ({ webhook_id }) => webhook_id,
    });
    if (due.length === 0) return [];
    const abandoned = due.filter((delivery) => delivery.claim_token !== null).map((delivery) => delivery.id);
    if (abandoned.length > 0) await queries.endInterruptedAttempts(db, abandoned);
    const claimed = await queries.claimDeliveries(
      db,
      due.map(({ id }) => id),
      request.leaseSeconds,
    );
    const claims = claimed.map((delivery) => ({
      ...delivery,
      attemptId: newOrderedId(platform.clock.now().getTime()),
    }));
    await queries.insertAttempts(db, claims.map(attemptOf));
    return claims;
  });

const attemptOf = (claim: Claim) => ({
  id: claim.attemptId,
  organization_id: claim.organization_id,
  webhook_id: claim.webhook_id,
  delivery_id: claim.id,
  number: claim.attempts,
  kind: claim.kind,
  matched_event: claim.matched_event,
  target_url: claim.target_url,
});
