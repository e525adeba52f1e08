import type { NodemailerError } from 'nodemailer';
import { cut } from '#kernel/chat-text.ts';
import { printable } from '#kernel/printable.ts';
import { OutgoingError, outgoingError } from '#platform/http-client/errors.ts';

/** Characters of a server's text that are shown. */
const MAX_SHOWN = 200;

/** Returns foreign text on one printable line of limited length. */
const shown = (text: string): string => cut(printable(text.replaceAll(/\s+/g, ' ').trim()), MAX_SHOWN);

/** Refusal of SMTP: its code, often an enhanced one, and text. */
const REFUSAL = /^([45]\d\d)(?:[ -]|$)(?:([45]\.\d{1,3}\.\d{1,3})(?=[ \n]|$))?/;

/**
 * Returns the answer to the first command that a server refused, for users; null if it refused none. Bytes of another protocol are never
 * shown, and of the answer to a login only the codes: a server may repeat what it was sent.
 */
export function refusalOf([error, ...others]: NodemailerError[]): string | null {
  if (error === undefined) return null;
  const { code, response = '', recipient } = error;
  const [, status, enhanced] = REFUSAL.exec(response) ?? [];
  if (status === undefined && recipient === undefined) return null;
  if (code === 'EAUTH') return `answered ${[status, enhanced].filter(Boolean).join(' ')} to the login`;
  const text = status && shown(response.replaceAll(/^[45]\d\d[ -]?/gm, '')).replace(/\.$/, '');
  const answer = [status ?? 'no code of SMTP', text].filter(Boolean).join(' ');
  const more = others.length === 0 ? '' : ` and refused ${others.length} more`;
  return `answered ${answer}${recipient === undefined ? '' : ` to the recipient ${recipient}${more}`}`;
}

/** Returns the errors of the recipients that a server refused, or else the error itself. */
export const refusedOf = (error: NodemailerError): NodemailerError[] =>
  error.code === 'ETLS' ? [] : error.rejectedErrors?.length ? error.rejectedErrors : [error];

/** Returns the error for a mail that got no answer. */
export function mailError(error: NodemailerError, server: string): OutgoingError {
  if (error.code === 'ETLS' && error.response !== undefined)
    return new OutgoingError('tls', `${server} offers no TLS (STARTTLS), without which nothing is sent to it.`, error);
  if (error.code === 'EPROTOCOL' || error.response !== undefined)
    return new OutgoingError('connection', `${server} answered something that is not SMTP.`, error);
  // The code of the network stack, which Nodemailer replaces by its own.
  const code = error.originalCode ?? error.code;
  return outgoingError(Object.assign(new Error(shown(error.message), { cause: error }), { code }), server);
}
