import { newOrderedId } from '#kernel/ids.ts';
import * as queries from '#delivery/webhooks/queries.ts';
import type { Platform } from '#platform/context.ts';
import type { ClaimRequest } from '#platform/work/index.ts';

/** Calls of one organization and of one webhook in a process, exceeded by one claim at most: slow receivers hold up few others. */
const ORGANIZATION_SLOTS = 32;
const WEBHOOK_SLOTS = 8;
const CLAIM_AT_ONCE = 8;

/** Claim on a delivery, with the attempt that was opened for it. */
export interface Claim extends queries.ClaimedDelivery {
  attemptId: string;
}

export interface ClaimOptions {
  /** Claims that this process carries on. */
  underWay: Iterable<Claim>;
  breaker: queries.Breaker;
}

/** Claims deliveries that are due, a few at a time: each claim counts those before it against the limits of webhooks and organizations. */
export async function claimUpTo(
  platform: Platform,
  request: ClaimRequest,
  { underWay, breaker }: ClaimOptions,
): Promise<Claim[]> {
  const claims: Claim[] = [];
  try {
    while (claims.length < request.limit) {
      const limit = Math.min(CLAIM_AT_ONCE, request.limit - claims.length);
      const more = await claimDue(platform, { ...request, limit }, busyOf([...underWay, ...claims]), breaker);
      if (more.length === 0) break;
      claims.push(...more);
    }
  } catch (error) {
    // What is claimed already begins; the next look meets the error again.
    if (claims.length === 0) throw error;
  }
  return claims;
}

/** Claims deliveries and opens an attempt for each. An attempt that a lost worker left open is closed as one without an answer. */
const claimDue = (
  platform: Platform,
  { limit, leaseSeconds }: ClaimRequest,
  busy: queries.Busy,
  breaker: queries.Breaker,
): Promise<Claim[]> =>
  platform.db.transaction().execute(async (db) => {
    const webhookIds = [...busy.webhookIds, ...(await queries.listPaused(db))];
    const locked = await queries.lockDue(db, limit, { ...busy, webhookIds });
    if (locked.length === 0) return [];
    // A receiver that failed all its last calls gets one, which tells whether it is back.
    const isFailing = (delivery: (typeof locked)[number]) => delivery.failures >= breaker.failures;
    const due = locked.filter(
      (delivery, place) =>
        !isFailing(delivery) || locked.findIndex((one) => one.webhook_id === delivery.webhook_id) === place,
    );
    const probed = due.filter(isFailing).map(({ webhook_id }) => webhook_id);
    if (probed.length > 0) await queries.pauseWebhooks(db, probed, leaseSeconds);
    const abandoned = due.filter((delivery) => delivery.claim_token !== null).map((delivery) => delivery.id);
    if (abandoned.length > 0) await queries.endInterruptedAttempts(db, abandoned);
    const claimed = await queries.claimDeliveries(
      db,
      due.map(({ id }) => id),
      leaseSeconds,
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

/** Returns the webhooks and organizations with as many claims as their limits. */
const busyOf = (claims: Claim[]): queries.Busy => ({
  webhookIds: frequent(
    claims.map((claim) => claim.webhook_id),
    WEBHOOK_SLOTS,
  ),
  organizationIds: frequent(
    claims.map((claim) => claim.organization_id),
    ORGANIZATION_SLOTS,
  ),
});

/** Returns the ids that occur at least so many times. */
const frequent = (ids: string[], times: number): string[] =>
  [...Map.groupBy(ids, (id) => id)].filter(([, same]) => same.length >= times).map(([id]) => id);
