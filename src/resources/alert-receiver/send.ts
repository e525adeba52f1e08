import { badGateway } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { createHttpClient, OutgoingError, type HttpClient } from '#platform/http-client/index.ts';
import type { Context } from '#platform/context.ts';
import type { Call } from '#platform/http/route.ts';
import { createMailClient, type MailClient } from '#platform/mail-client/index.ts';
import type { Destination } from '#resources/alert-receiver/destination.ts';
import { bodyFor, mailTextOf, type MessagePart } from '#resources/alert-receiver/message.ts';

/** Bytes of a refusal that are read. */
const MAX_ANSWER = 16 * 1024;
/** Milliseconds that a receiver has to answer. */
const TIMEOUT_MS = 10_000;

/** Ways out of the program. */
export interface Outgoing {
  http: HttpClient;
  mail: MailClient;
}

/** Creates the ways out that the settings allow. */
export const createOutgoing = ({ allowedPrivateAddresses }: Context['settings']): Outgoing => ({
  http: createHttpClient({ allowedPrivateAddresses }),
  mail: createMailClient({ allowedPrivateAddresses }),
});

/** Message to a receiver. */
export interface Message {
  /** Same for each repetition, so that its reader can recognize one. */
  id: string;
  parts: MessagePart[];
}

/** Answer of a receiver. */
export interface Receipt {
  /** True if the message arrived, for mail at one recipient at least. */
  arrived: boolean;
  /** Answer of a receiver that did not take it, or not for all recipients, such as `answered 503`. */
  refusal: string | null;
}

/** Sends a message to a webhook, in the form that the service behind it takes, or as mail. Throws OutgoingError if there was no answer. */
export async function sendMessage(
  { http, mail }: Outgoing,
  destination: Destination,
  { id, parts }: Message,
  signal: AbortSignal,
): Promise<Receipt> {
  if (destination.type === 'EMAIL') {
    const { server, from, to } = destination;
    const { accepted, refusal } = await mail.send(server, { id, from, to, ...mailTextOf(parts) }, signal);
    return { arrived: accepted, refusal };
  }
  const { url } = destination;
  const { status } = await http.request(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': 'Quarterdeck-Alert/1',
      'quarterdeck-alert-id': id,
    },
    body: JSON.stringify(bodyFor(url, parts)),
    timeoutMs: TIMEOUT_MS,
    maxBytes: MAX_ANSWER,
    secretUrl: true,
    signal,
  });
  const arrived = status >= 200 && status <= 299;
  return { arrived, refusal: arrived ? null : `answered ${status}` };
}

/** Sends a test message; 502 with the reason if it does not arrive everywhere. Without a text, it says which receiver is tested. */
export async function sendTest(
  { settings, signal }: Pick<Call, 'settings' | 'signal'>,
  destination: Destination,
  { name, text }: { name: string; text: string | undefined },
): Promise<void> {
  const parts = text === undefined ? testMessage(name) : [{ text, foreign: true }];
  try {
    const { refusal } = await sendMessage(createOutgoing(settings), destination, { id: newId(), parts }, signal);
    if (refusal !== null) throw badGateway(`The test message was refused: ${hostOf(destination)} ${refusal}.`);
  } catch (error) {
    if (error instanceof OutgoingError) throw badGateway(`The test message was not sent: ${error.message}`, error);
    throw error;
  }
}

/** Returns where a destination is, without what is secret. */
export const hostOf = (destination: Destination): string =>
  destination.type === 'SLACK' ? new URL(destination.url).host : destination.smarthost;

const testMessage = (name: string): MessagePart[] => [
  { text: 'Test of the alert receiver ' },
  { text: name, foreign: true },
  { text: ': messages arrive.' },
];
