import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds for which idle connections stay open after listening has ended: their clients may be sending a request. */
const GRACE_MS = 1_500;
const LOOK_MS = 10;
const QUIET_TURNS = 3;

/**
 * Ends listening without breaking a connection. Connections that the kernel has accepted by then are answered, and clients that keep
 * connections are told to close them with their next answer. Resolves when all are gone, or the time for idle ones is over.
 */
export async function drain(server: Server): Promise<void> {
  if (!server.listening) return;
  await acceptAll(server);
  // Not the HTTP server's own: that one ends idle connections at once.
  NetServer.prototype.close.call(server);
  for (const end = performance.now() + GRACE_MS; performance.now() < end; await sleep(LOOK_MS))
    if ((await connectionsOf(server)) === 0) return;
}

/**
 * Accepts waiting connections: the kernel resets what it holds when listening ends. Each turn of the event loop accepts one, so it ends
 * after turns without one.
 */
async function acceptAll(server: Server): Promise<void> {
  let accepted = 0;
  const count = () => void accepted++;
  server.on('connection', count);
  for (let quiet = 0, before = 0; quiet < QUIET_TURNS; before = accepted) {
    await nextTurn();
    quiet = accepted === before ? quiet + 1 : 0;
  }
  server.off('connection', count);
}

const connectionsOf = (server: Server): Promise<number> =>
  new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))));
