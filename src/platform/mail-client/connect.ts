import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { OutgoingError, type Lookup } from '#platform/http-client/index.ts';
import { checkedLookup } from '#platform/http-client/hosts.ts';
import { foreignPort, needsOwnAddress, type MailServer } from '#platform/mail-client/server.ts';

/** Bytes of all replies of a server, TLS among them. */
const MAX_BYTES = 256 * 1024;
/** Milliseconds between two looks at the number of bytes. */
const LOOK_MS = 20;

/** Connection to a mail server; its disposal destroys it. */
interface Connection extends Disposable {
  socket: Socket;
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
  // Nodemailer takes its own listeners away before the socket is closed.
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const { promise: flooded, reject } = Promise.withResolvers<never>();
  // Nodemailer limits a single reply, not their number; and its TLS reads the bytes without events.
  const watch = setInterval(() => {
    if (socket.bytesRead <= MAX_BYTES) return;
    reject(new OutgoingError('connection', `${host}:${port} sent more than ${MAX_BYTES / 1024} KiB.`));
    socket.destroy();
  }, LOOK_MS);
  return {
    socket,
    flooded,
    [Symbol.dispose]: () => {
      clearInterval(watch);
      socket.destroy();
    },
  };
}
