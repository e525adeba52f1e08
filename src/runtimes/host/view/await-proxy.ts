import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long a proxy may take to listen in the view's network. */
const PATIENCE_MS = 30_000;
const LOOK_MS = 20;

/** Waits for what somebody outside puts into this network of ours: a proxy that listens on its loopback. */
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
