import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { Duplex, Transform } from 'node:stream';
import { OutgoingError, type Lookup } from '#platform/http-client/index.ts';
import { checkedLookup } from '#platform/http-client/hosts.ts';
import { foreignPort, needsOwnAddress, type MailServer } from '#platform/mail-client/server.ts';

/**
 * Bytes of all replies of a server, TLS among them. Nodemailer limits a single reply, and not their number: it handles as many empty lines as
 * come, each in a turn of its own, also those that are left once the connection is closed.
 */
const MAX_BYTES = 64 * 1024;

/** Connection to a mail server; its disposal destroys it. */
interface Connection extends Disposable {
  stream: Duplex;
  /** Rejects with OutgoingError once the server has sent too much. */
  flooded: Promise<never>;
}

/** Connects to a server at an address that is resolved and checked for this connection, which the signal destroys. */
export async function connect(
  { host, port }: MailServer,
  resolve: Lookup,
  allowed: readonly string[],
  signal: AbortSignal,
): Promise<Connection> {
  const refusal = needsOwnAddress(port) ? (name: string) => foreignPort(name, port) : undefined;
  const socket = connectTcp({ host, port, lookup: checkedLookup(resolve, allowed, refusal), signal });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const { promise: flooded, reject } = Promise.withResolvers<never>();
  // Heard only while the mail is under way.
  flooded.catch(() => undefined);
  let received = 0;
  const limit = new Transform({
    transform(part: Buffer, _, done) {
      received += part.length;
      if (received <= MAX_BYTES) return done(null, part);
      reject(new OutgoingError('connection', `${host}:${port} sent more than ${MAX_BYTES / 1024} KiB.`));
      socket.destroy();
    },
  });
  const stream = Duplex.from({ readable: socket.pipe(limit), writable: socket });
  // Nothing is said to a server that has ended.
  stream.once('end', () => stream.destroy());
  // Nodemailer takes its own listeners away before the connection is closed.
  stream.on('error', () => undefined);
  return {
    // The signal ends what takes too long: Nodemailer's own time limits are not needed.
    stream: Object.assign(stream, { setTimeout: () => stream }),
    flooded,
    [Symbol.dispose]: () => {
      socket.destroy();
      stream.destroy();
    },
  };
}
