import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type NetConnectOpts, type Server } from 'node:net';

/** Listens at a host on a free port and passes each connection on; returns the port. */
export async function relay(host: string, to: NetConnectOpts): Promise<{ port: number; close(): Promise<void> }> {
  const sockets = new Set<{ destroy(): void }>();
  const server: Server = createServer((socket) => {
    const there = connect(to);
    for (const [end, other] of [
      [socket, there],
      [there, socket],
    ] as const) {
      sockets.add(end);
      end.on('error', () => other.destroy());
      end.on('close', () => sockets.delete(end));
    }
    socket.pipe(there).pipe(socket);
  }).listen(0, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
