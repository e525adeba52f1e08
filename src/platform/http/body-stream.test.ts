import { connect, type AddressInfo } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hangUpOnSlowRequests, passStreams } from '#platform/http/body-stream.ts';

let app: FastifyInstance;
let port: number;
beforeAll(async () => {
  app = Fastify({ forceCloseConnections: true });
  hangUpOnSlowRequests(app, 200);
  app.post('/json', (request) => request.body);
  app.addHook('preParsing', (request, reply, payload, done) => {
    if (request.url !== '/begins') return done(null, payload);
    reply.hijack();
    reply.raw.writeHead(200).write('begun');
  });
  app.post('/begins', () => 'never');
  void app.register((scope, _options, registered) => {
    passStreams(scope);
    scope.post('/refused', { config: { streams: true } }, (_request, reply) => reply.code(401).send('refused'));
    scope.post('/read', { config: { streams: true } }, async (request) => {
      let bytes = 0;
      for await (const chunk of request.body as AsyncIterable<Buffer>) bytes += chunk.length;
      return { bytes };
    });
    registered();
  });
  app.post('/stream', { config: { streams: true } }, (request) => request.body);
  await app.listen({ host: '127.0.0.1', port: 0 });
  port = (app.server.address() as AddressInfo).port;
});
afterAll(() => app.close());

/** Sends the half of a request, and the other half after the given time; returns all that is answered. */
async function halves(path: string, ms: number): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let answer = '';
  socket.on('data', (part) => (answer += String(part))).on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 8\r\n\r\n{"a"`); // prettier-ignore
  setTimeout(() => socket.writable && socket.write(':12}'), ms);
  await closed;
  return answer;
}

test('a request that is not whole in time is hung up on with 408, and one with a streamed body goes on', async () => {
  const [slow, streamed, quick] = await Promise.all([
    halves('/json', 2000),
    halves('/stream', 600),
    halves('/json', 0),
  ]);
  expect(slow).toMatch(/^HTTP\/1.1 408 /);
  expect(streamed).toMatch(/^HTTP\/1.1 200 [^]*{"a":12}$/);
  expect(quick).toMatch(/^HTTP\/1.1 200 [^]*{"a":12}$/);
});

test('a slow request whose answer has begun is cut off without a second answer', async () => {
  const answer = await halves('/begins', 2000);
  expect(answer).toMatch(/^HTTP\/1.1 200 [^]*begun/);
  expect(answer).not.toContain('408');
});

/** Sends a body of 1 MiB chunks until the connection ends; returns what is answered and how the connection ended. */
async function flood(path: string, mebibytes: number) {
  // It goes on sending when the server has ended its side.
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let answer = '';
  let sent = 0;
  let error: Error | undefined;
  socket.on('data', (part) => (answer += String(part))).on('error', (reason) => (error = reason));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${mebibytes * 2 ** 20}\r\n\r\n`);
  const send = (): void => {
    if (socket.destroyed) return;
    if (sent === mebibytes) return void socket.end();
    sent++;
    socket.write(Buffer.alloc(2 ** 20), () => setTimeout(send, 5));
  };
  send();
  await closed;
  return { answer, sent, error };
}

test('an answer that comes before the body is read arrives whole, and its connection is closed', async () => {
  const { answer, sent, error } = await flood('/refused', 50);
  expect(answer).toMatch(/^HTTP\/1.1 401 [^]*connection: close[^]*refused$/i);
  expect({ sent, error }).toEqual({ sent: 50, error: undefined });
});

test('a body without an end is not read forever, but 5 s behind its answer', { timeout: 60_000 }, async () => {
  const began = performance.now();
  const { answer } = await flood('/refused', 1_000_000);
  expect(answer).toContain('refused');
  expect(performance.now() - began).toBeGreaterThan(4_000);
});

test('a connection whose body was read takes the next request', async () => {
  const socket = connect(port, '127.0.0.1');
  let answer = '';
  socket.on('data', (part) => (answer += String(part)));
  const ask = () => socket.write('POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc');
  ask();
  await expect.poll(() => answer.match(/"bytes":3/g)?.length).toBe(1);
  ask();
  await expect.poll(() => answer.match(/"bytes":3/g)?.length).toBe(2);
  expect(answer).not.toMatch(/connection: close/i);
  socket.destroy();
});
