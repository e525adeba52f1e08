import { storable } from '#kernel/storable.ts';
import { OutgoingError } from '#platform/http-client/index.ts';
import type { Platform } from '#platform/context.ts';
import type { ClaimRequest, Lease } from '#platform/work/index.ts';
import { openDestination, sendMessage, type Outgoing, type Receipt } from '#resources/alert-receiver/index.ts';
import type { Breaker } from '#delivery/receivers/breaker.ts';
import { signalOfCall } from '#delivery/receivers/call-signal.ts';
import type { Busy } from '#delivery/receivers/fair-share.ts';
import { partsOf } from '#delivery/alerts/content.ts';
import * as messages from '#delivery/alerts/message-queries.ts';

export interface SendOptions {
  platform: Platform;
  outgoing: Outgoing;
  /** Milliseconds between a failed call and the next one. After the last a message is given up. */
  scheduleMs: readonly number[];
  /** Milliseconds that a receiver has to answer once the process stops. */
  graceMs: number;
  breaker: Breaker;
}

/** Claims messages that are due, but for receivers that are busy or paused. */
export const claimDue = (
  { platform, breaker }: SendOptions,
  request: ClaimRequest,
  busy: Busy,
): Promise<messages.MessageClaim[]> =>
  platform.db.transaction().execute(async (db) => {
    const due = await messages.RECEIVERS.chooseCalls(db, request, busy, breaker, {
      lockDue: messages.lockDue,
      receiverOf: ({ receiver_id }) => receiver_id,
    });
    if (due.length === 0) return [];
    const ids = due.map(({ id }) => id);
    return messages.claimMessages(db, ids, request.leaseSeconds);
  });

/** Sends a message and records the result. Throws ClaimLost. */
export async function send(options: SendOptions, claim: messages.MessageClaim, lease: Lease): Promise<void> {
  const { platform, breaker, scheduleMs } = options;
  const { arrived, error } = await call(options, claim, lease);
  const waitMs = arrived ? undefined : scheduleMs[claim.tries];
  const isGivenUp = !arrived && waitMs === undefined;
  const told = isGivenUp ? `${error} The message was given up after ${claim.tries + 1} tries.` : error;
  await platform.db.transaction().execute(async (db) => {
    // The receiver first: who deletes it locks it before its messages.
    if (arrived) await messages.RECEIVERS.forgetFailures(db, claim.receiver_id);
    else await messages.RECEIVERS.countFailure(db, claim.receiver_id, breaker);
    await messages.noteDelivery(db, claim, told);
    if (waitMs === undefined) await messages.endMessage(db, claim, told);
    else await messages.putOff(db, claim, told!, waitMs);
  });
}

/** Result of a call; the error says what did not arrive. */
interface Result {
  arrived: boolean;
  error: string | null;
}

/** Calls the receiver. Throws for a call that the end of its lease broke off. */
async function call(
  { platform, outgoing, graceMs }: SendOptions,
  claim: messages.MessageClaim,
  lease: Lease,
): Promise<Result> {
  lease.hold();
  const signal = signalOfCall(lease, graceMs);
  try {
    const destination = await openDestination(platform, claim);
    const message = { id: claim.id, parts: partsOf(claim.content) };
    return resultOf(await sendMessage(outgoing, destination, message, signal));
  } catch (error) {
    if (signal.aborted) lease.hold();
    if (error instanceof OutgoingError) return { arrived: false, error: storable(error.message) };
    platform.log.error({ err: error, message: claim.id }, 'the message of an alert could not be sent');
    return {
      arrived: false,
      error: 'The message could not be sent because of an internal error; the log of the server says more.',
    };
  }
}

/** A message that some recipients have is not sent again, because they would get it again. */
function resultOf({ arrived, refusal }: Receipt): Result {
  if (refusal === null) return { arrived, error: null };
  const error = storable(`The receiver ${refusal}${arrived ? '; the message arrived at the others' : ''}.`);
  return { arrived, error };
}
