import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds that a proxy may take to listen in the view's network. */
const PATIENCE_MS = 30_000;
const LOOK_MS = 20;

/** Waits for a proxy that a process outside opens on the loopback of this network. */
export async function awaitProxy(port: number): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; !(await isListening(port)); await sleep(LOOK_MS))
    if (Date.now() > end) throw new Error('its proxy does not start');
}

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
