import { connect } from 'node:net';
import { once } from 'node:events';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createServer } from '#platform/http/server.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();

/** A server that listens, and a connection to it that has sent nothing. */
async function listening() {
  const server = createServer({
    platform: app.platform,
    sessions: null,
    limiter: null as never,
    routes: [],
    log: pino({ level: 'silent' }),
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = server.server.address() as { port: number };
  const open = async () => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.setEncoding('utf8');
    return socket;
  };
  return { server, open };
}

const ask = (socket: ReturnType<typeof connect>) => {
  socket.write('GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n');
  return once(socket, 'data') as Promise<string[]>;
};

test('a server that ends answers what comes on connections that stand, and asks to close them', async () => {
  const { server, open } = await listening();
  const [fresh, kept] = [await open(), await open()];
  expect((await ask(kept))[0]).toMatch(/^HTTP\/1.1 404[^]*connection: keep-alive/i);
  const closed = server.close();
  await expect.poll(() => server.server.listening).toBe(false);
  for (const socket of [fresh, kept]) expect((await ask(socket))[0]).toMatch(/^HTTP\/1.1 404[^]*connection: close/i);
  await closed;
  await expect(open()).rejects.toThrow('ECONNREFUSED');
});

test('connections that wait to be accepted when a server ends are answered', async () => {
  const { server, open } = await listening();
  // All of them are made while nothing accepts them.
  const opening = Array.from({ length: 20 }, () => open());
  const until = performance.now() + 100;
  while (performance.now() < until);
  const closed = server.close();
  for (const socket of await Promise.all(opening)) expect((await ask(socket))[0]).toMatch(/^HTTP\/1.1 404/);
  await closed;
});

test('a server that ends waits for idle connections only a moment', async () => {
  const { server, open } = await listening();
  const idle = await open();
  const ended = once(idle, 'close');
  await server.close();
  await ended;
});
