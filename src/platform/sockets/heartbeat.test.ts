import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { beginHeartbeat, type HeartbeatOptions } from '#platform/sockets/heartbeat.ts';

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** Opens a web socket, paused at the server's end, whose client counts pings. */
async function open(options: HeartbeatOptions, autoPong = true) {
  const http = createServer().listen(0, '127.0.0.1');
  const server = new WebSocketServer({ server: http });
  await once(http, 'listening');
  const client = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}`, { autoPong });
  const [socket, request] = (await once(server, 'connection')) as [WebSocket, IncomingMessage];
  socket.pause();
  await once(client, 'open');
  const seen = { pings: 0 };
  client.on('ping', () => seen.pings++);
  const stop = beginHeartbeat(socket, request.socket, options);
  ends.push(
    stop,
    () => client.terminate(),
    () => socket.terminate(),
    () => http.close(),
  );
  return { socket, client, seen };
}

test('a client whose input is not taken for a while is not cut off', async () => {
  const { socket, client, seen } = await open({ pingMs: 20 });
  await expect.poll(() => seen.pings).toBeGreaterThan(5);
  expect(socket.readyState).toBe(socket.OPEN);
  client.send('still here');
  const message = once(socket, 'message');
  socket.resume();
  expect(String((await message)[0])).toBe('still here');
});

test('a client whose input is never taken is cut off after so many pings', async () => {
  const { socket, seen } = await open({ pingMs: 20, pausedPings: 3 });
  await once(socket, 'close');
  expect(seen.pings).toBeLessThanOrEqual(3);
});

test('a client that sends nothing, not even answers to pings, is cut off', async () => {
  const { socket } = await open({ pingMs: 20 }, false);
  const closed = once(socket, 'close');
  socket.resume();
  await closed;
});
