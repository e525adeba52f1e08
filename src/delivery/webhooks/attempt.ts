import { storable } from '#kernel/storable.ts';
import { newId, newOrderedId } from '#kernel/ids.ts';
import { headersOf } from '#delivery/webhooks/message.ts';
import * as queries from '#delivery/webhooks/queries.ts';
import type { Platform } from '#platform/context.ts';
import { OutgoingError, type HttpClient } from '#platform/http-client/index.ts';
import { webhookSecretPlace } from '#resources/webhook/index.ts';

/** Milliseconds between a failed attempt and the next one, for each attempt but the last (docs/contributing/rules.md 41). */
export const RETRY_SCHEDULE_MS = [5_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000];

/** Number of bytes of an answer's body that are kept. */
const KEPT_BYTES = 16 * 1024;

/** Delivery that this process has claimed, with the attempt that was opened for it. */
export interface Claim extends queries.ClaimedDelivery {
  token: string;
  attemptId: string;
}

/**
 * Claims deliveries that are due: each is this process's until the lease is over, and has an attempt on record from now on.
 * An attempt that a lost worker left open is closed as one without an answer.
 */
export async function claimDue(
  platform: Platform,
  options: { limit: number; leaseMs: number; busy: queries.Busy; breaker: queries.Breaker },
): Promise<Claim[]> {
  return platform.db.transaction().execute(async (db) => {
    const webhookIds = [...options.busy.webhookIds, ...(await queries.listPaused(db))];
    const locked = await queries.lockDue(db, options.limit, { ...options.busy, webhookIds });
    if (locked.length === 0) return [];
    // A receiver that failed all its last calls gets one, which tells whether it is back.
    const isFailing = (delivery: (typeof locked)[number]) => delivery.failures >= options.breaker.failures;
    const due = locked.filter(
      (delivery, place) =>
        !isFailing(delivery) || locked.findIndex((one) => one.webhook_id === delivery.webhook_id) === place,
    );
    const probed = due.filter(isFailing).map(({ webhook_id }) => webhook_id);
    if (probed.length > 0) await queries.pauseWebhooks(db, probed, options.leaseMs);
    const abandoned = due.filter((delivery) => delivery.claim_token !== null).map((delivery) => delivery.id);
    if (abandoned.length > 0) await queries.endInterruptedAttempts(db, abandoned);
    const token = newId();
    const ids = due.map((delivery) => delivery.id);
    const claimed = await queries.claimDeliveries(db, ids, token, options.leaseMs);
    const claims = claimed.map((delivery) => ({
      ...delivery,
      token,
      attemptId: newOrderedId(platform.clock.now().getTime()),
    }));
    await queries.insertAttempts(db, claims.map(attemptOf));
    return claims;
  });
}

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

export interface AttemptOptions {
  timeoutMs: number;
  scheduleMs: readonly number[];
  breaker: queries.Breaker;
  /** Aborted when the process stops: the delivery is then given back. */
  signal: AbortSignal;
}

/** Makes the call of a claim and records what became of it. */
export async function attempt(
  platform: Platform,
  http: HttpClient,
  claim: Claim,
  options: AttemptOptions,
): Promise<void> {
  const result = await call(platform, http, claim, options);
  const end = endOf(claim, result, options);
  await platform.db.transaction().execute(async (db) => {
    // In the order in which a takeover locks them.
    await queries.endClaim(db, claim.id, claim.token, end);
    await queries.endAttempt(db, claim.attemptId, result);
  });
  // Apart: who deletes a webhook locks it before its deliveries.
  if ('state' in end && end.state === 'DELIVERED') await queries.forgetFailures(platform.db, claim.webhook_id);
  else if (!result.givenBack) await queries.countFailure(platform.db, claim.webhook_id, options.breaker);
}

type Result = { status: number; body: string; givenBack?: boolean };

/** Calls the receiver and returns its answer, or status 0 with the reason why there is none. */
async function call(platform: Platform, http: HttpClient, claim: Claim, options: AttemptOptions): Promise<Result> {
  try {
    const answer = await http.request(claim.target_url, {
      method: 'POST',
      headers: headersOf(claim.id, platform.clock.now(), claim.body, await secretOf(platform, claim)),
      body: claim.body,
      timeoutMs: options.timeoutMs,
      maxBytes: KEPT_BYTES,
      signal: options.signal,
    });
    return { status: answer.status, body: storable(answer.body.toString('utf8')) };
  } catch (error) {
    if (options.signal.aborted)
      return { status: 0, body: 'The process that made this call was stopped; it is made again.', givenBack: true };
    if (error instanceof OutgoingError) return { status: 0, body: storable(error.message) };
    platform.log.error({ err: error, delivery: claim.id }, 'the call of a webhook could not be made');
    return {
      status: 0,
      body: 'The call could not be made because of an internal error; the log of the server says more.',
    };
  }
}

async function secretOf(platform: Platform, claim: Claim): Promise<string | undefined> {
  if (claim.target_secret === null) return undefined;
  const place = webhookSecretPlace(claim.webhook_id);
  return platform.vault.open(platform.db, claim.organization_id, place, claim.target_secret);
}

function endOf(claim: Claim, result: Result, { scheduleMs }: AttemptOptions): Parameters<typeof queries.endClaim>[3] {
  if (result.givenBack) return { retryMs: 0, givenBack: true };
  if (result.status >= 200 && result.status < 300) return { state: 'DELIVERED' };
  const retryMs = scheduleMs[claim.tries - 1];
  return retryMs === undefined ? { state: 'FAILED' } : { retryMs };
}
