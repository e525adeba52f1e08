import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createTransport } from 'nodemailer';
import { domainOf } from '#platform/mail-client/address.ts';
import { refusalOf } from '#platform/mail-client/errors.ts';
import { TLS_PORT, type MailServer } from '#platform/mail-client/server.ts';

/** Bytes of one reply of a server. */
const MAX_REPLY = 16 * 1024;

/** Mail of plain text. */
export interface Mail {
  /** First part of its Message-ID; the same for a repetition. */
  id: string;
  /** Sender and recipients, as `isMailAddress` takes them. */
  from: string;
  to: string[];
  subject: string;
  text: string;
}

/** Answer of a server. */
export interface MailAnswer {
  /** True if the server took the mail for at least one recipient. */
  accepted: boolean;
  /** First refusal, of the mail or of a recipient, such as `answered 550 no such user to the recipient a@example.com`. */
  refusal: string | null;
}

/** Sends a mail over a connection and returns the answer. Throws NodemailerError. */
export async function submit(
  connection: Duplex,
  { host, port, isTls = port === TLS_PORT, requireTls, login }: MailServer,
  { id, from, to, subject, text }: Mail,
  signal: AbortSignal,
): Promise<MailAnswer> {
  const domain = domainOf(from);
  const transport = createTransport({
    // Of a socket it takes what a stream has.
    connection: connection as Socket,
    host,
    port,
    secure: isTls,
    requireTLS: requireTls || login !== null,
    tls: { rejectUnauthorized: true, minVersion: 'TLSv1.2' },
    ...(login && { auth: { user: login.username, pass: login.password } }),
    // A server that offers no login must not get the mail without one.
    forceAuth: true,
    // Nodemailer would send the host name of this machine.
    name: domain,
    maxResponseSize: MAX_REPLY,
    socketCloseTimeout: 0,
  });
  const { rejectedErrors = [] } = await transport.sendMail({
    envelope: { from, to },
    from: { name: '', address: from },
    to: to.map((address) => ({ name: '', address })),
    subject,
    text,
    messageId: `<${id}@${domain}>`,
    headers: { 'Auto-Submitted': 'auto-generated' },
    xMailer: false,
    disableFileAccess: true,
    disableUrlAccess: true,
    signal,
  });
  return { accepted: true, refusal: refusalOf(rejectedErrors) };
}
