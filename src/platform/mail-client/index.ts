import type { NodemailerError } from 'nodemailer';
import { internal } from '#kernel/errors.ts';
import { anySignal } from '#kernel/lease-signal.ts';
import { OutgoingError, type HttpClientOptions } from '#platform/http-client/index.ts';
import { systemLookup } from '#platform/http-client/hosts.ts';
import { isMailAddress } from '#platform/mail-client/address.ts';
import { connect } from '#platform/mail-client/connect.ts';
import { mailError, refusalOf, refusedOf } from '#platform/mail-client/errors.ts';
import { refuseServer, type MailServer } from '#platform/mail-client/server.ts';
import { submit, type Mail, type MailAnswer } from '#platform/mail-client/submit.ts';

export { isMailAddress } from '#platform/mail-client/address.ts';
export { checkSmarthost, parseSmarthost, TLS_PORT, type MailServer } from '#platform/mail-client/server.ts';
export type { Mail } from '#platform/mail-client/submit.ts';

const DEFAULT_TIMEOUT_MS = 10_000;

/** Sends mail through servers that users gave. */
export interface MailClient {
  /**
   * Sends a mail over a connection of its own, which is closed at the end. The address is checked when the connection is made, and
   * certificates are verified. Throws OutgoingError if the server did not answer.
   */
  send(server: MailServer, mail: Mail, signal: AbortSignal): Promise<MailAnswer>;
}

export interface MailClientOptions extends HttpClientOptions {
  /** Milliseconds for the whole sending; 10 s if absent. */
  timeoutMs?: number;
}

/** Creates the client for mail servers that users give. */
export function createMailClient(options: MailClientOptions): MailClient {
  const { allowedPrivateAddresses, lookup = systemLookup, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  return {
    async send(server, mail, signal) {
      // Nodemailer would make something of any other text.
      if (![mail.from, ...mail.to].every(isMailAddress)) throw internal('A mail has an address that is none.');
      refuseServer(server, allowedPrivateAddresses);
      const name = `${server.host}:${server.port}`;
      const deadline = AbortSignal.timeout(timeoutMs);
      const ended = anySignal([deadline, signal]);
      try {
        using connection = await connect(server, lookup, allowedPrivateAddresses, ended);
        return await Promise.race([submit(connection.stream, server, mail, ended), connection.flooded]);
      } catch (error) {
        if (deadline.aborted)
          throw new OutgoingError('timeout', `${name} did not answer within ${timeoutMs} ms.`, error);
        signal.throwIfAborted();
        if (error instanceof OutgoingError) throw error;
        const refusal = refusalOf(refusedOf(error as NodemailerError));
        if (refusal === null) throw mailError(error as NodemailerError, name);
        return { accepted: false, refusal };
      }
    },
  };
}
