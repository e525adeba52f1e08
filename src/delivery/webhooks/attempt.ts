import { storable } from '#kernel/storable.ts';
import type { Breaker } from '#delivery/receivers/breaker.ts';
import { signalOfCall } from '#delivery/receivers/call-signal.ts';
import type { Claim } from '#delivery/webhooks/claims.ts';
import { headersOf } from '#delivery/webhooks/message.ts';
import * as queries from '#delivery/webhooks/queries.ts';
import type { Platform } from '#platform/context.ts';
import type { Database, Transaction } from '#platform/database/index.ts';
import { OutgoingError, type HttpClient } from '#platform/http-client/index.ts';
import { requireHeld, type Lease } from '#platform/work/index.ts';
import { webhookSecretPlace } from '#resources/webhook/index.ts';

/** Number of bytes of an answer's body that are kept. */
const KEPT_BYTES = 16 * 1024;

export interface AttemptOptions {
  platform: Platform;
  http: HttpClient;
  /** Milliseconds that the receiver has to answer. */
  timeoutMs: number;
  /** Milliseconds that a receiver has to answer once the process stops. */
  graceMs: number;
  scheduleMs: readonly number[];
  breaker: Breaker;
}

/** Makes the call of a claim and records its result. Throws ClaimLost and WorkStopped. */
export async function attempt(options: AttemptOptions, claim: Claim, lease: Lease): Promise<void> {
  const result = await call(options, claim, lease);
  const end = endOf(claim, result, options);
  await options.platform.db.transaction().execute(async (db) => {
    // The webhook first: who deletes it locks it before its deliveries.
    if ('state' in end && end.state === 'DELIVERED') await queries.WEBHOOKS.forgetFailures(db, claim.webhook_id);
    else await queries.WEBHOOKS.countFailure(db, claim.webhook_id, options.breaker);
    requireHeld(await recordEnd(db, claim, end, result));
  });
}

/** Gives back the delivery of a process that stops: it is due at once, and the attempt does not count as a try. */
export const giveBack = (db: Database, claim: Claim): Promise<boolean> =>
  db
    .transaction()
    .execute((transaction) =>
      recordEnd(
        transaction,
        claim,
        { retryMs: 0, givenBack: true },
        { status: 0, body: 'The process that made this call was stopped; it is made again.' },
      ),
    );

/** Ends a claim and its attempt; writes nothing and returns false if the claim is lost. */
async function recordEnd(
  db: Transaction,
  claim: Claim,
  end: queries.ClaimEnd,
  result: queries.AttemptResult,
): Promise<boolean> {
  // In the order in which a takeover locks them.
  const isHeld = await queries.endClaim(db, claim, end);
  if (isHeld) await queries.endAttempt(db, claim.attemptId, result);
  return isHeld;
}

/** Calls the receiver and returns its answer, or the reason why there is none. Throws for a call that the end of its lease broke off. */
async function call(
  { platform, http, timeoutMs, graceMs }: AttemptOptions,
  claim: Claim,
  lease: Lease,
): Promise<queries.AttemptResult> {
  lease.hold();
  const signal = signalOfCall(lease, graceMs);
  try {
    const answer = await http.request(claim.target_url, {
      method: 'POST',
      headers: headersOf(claim.id, platform.clock.now(), claim.body, await secretOf(platform, claim)),
      body: claim.body,
      timeoutMs,
      maxBytes: KEPT_BYTES,
      signal,
    });
    return { status: answer.status, body: storable(answer.body.toString('utf8')) };
  } catch (error) {
    if (signal.aborted) lease.hold();
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

function endOf(claim: Claim, { status }: queries.AttemptResult, { scheduleMs }: AttemptOptions): queries.ClaimEnd {
  if (status >= 200 && status < 300) return { state: 'DELIVERED' };
  const retryMs = scheduleMs[claim.tries - 1];
  return retryMs === undefined ? { state: 'FAILED' } : { retryMs };
}
