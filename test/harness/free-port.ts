import { once } from 'node:events';
import { createServer } from 'node:net';

/** Ports below those that Linux gives to connections. The host runtime takes some of those between. */
const FIRST = 10_000;
const COUNT = 10_000;
const given = new Set<number>();

/**
 * Returns a port of this machine that is free now, for settings that need it before its server starts. It stays free until then: nothing else
 * gets it by chance, as it might get one of those that the system chooses.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (given.has(port)) continue;
    const server = createServer();
    server.listen(port);
    // Rejects where another server has it.
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    given.add(port);
    return port;
  }
}
