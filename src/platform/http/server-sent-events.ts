import { serialize } from '#platform/http/compile.ts';
import { named, Type } from '#platform/http/schema.ts';

/** Time that a client waits before it connects again, in ms. */
const RETRY_MS = 2_000;

/** First text of every stream. */
export const OPENING = `retry: ${RETRY_MS}\n\n`;

/** Data of the last event of a stream that the server ends. */
export const EndEvent = named(
  'StreamEndEvent',
  Type.Object({
    status: Type.Integer({ description: 'What a request would be answered now.' }),
    message: Type.String(),
  }),
);

/**
 * Formats an event for the wire. Names and ids must hold no line break; JSON in `data` holds none. Without a name the event is a `message`
 * for its client.
 */
export const block = (event: string | undefined, data: string, id?: string): string =>
  `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`;

/** Formats a comment that keeps proxies from closing the connection. The id without an event is stored by clients as the position. */
export const heartbeat = (id?: string): string => `: heartbeat\n${id === undefined ? '' : `id: ${id}\n`}\n`;

/** Formats the last event of a stream that the server ends: `status` and `message` are those that a request would be answered now. */
export const endBlock = (status: number, message: string): string =>
  block('end', serialize(EndEvent, { status, message }));
