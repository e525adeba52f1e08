import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import Fastify from 'fastify';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Platform } from '#platform/context.ts';
import { bodyHook } from '#platform/http/too-large.ts';

const LIMIT = 1_000;
const app = Fastify({ bodyLimit: LIMIT });
let port: number;
let seen: number[] = [];
let refusal: Error | undefined;

beforeAll(async () => {
  const platform = { settings: { trustedProxies: [] } } as unknown as Platform;
  const onTooLarge = async ({ body }: { body: AsyncIterable<Buffer> }) => {
    let size = 0;
    for await (const part of body) size += part.length;
    seen.push(size);
  };
  const beforeBody = () => {
    if (refusal) throw refusal;
  };
  app.post('/', { preParsing: bodyHook(platform, { beforeBody, onTooLarge }, LIMIT) }, (call) => ({ read: JSON.stringify(call.body).length })); // prettier-ignore
  await app.listen({ port: 0, host: '127.0.0.1' });
  port = (app.server.address() as AddressInfo).port;
});
beforeEach(() => {
  seen = [];
  refusal = undefined;
});
afterAll(() => app.close());

/** Sends a body in parts, of which only the end tells the length unless a header does. */
async function send(parts: string[], headers: Record<string, string> = {}) {
  const call = request({ port, method: 'POST', headers: { 'content-type': 'application/json', ...headers } });
  for (const part of parts) call.write(part);
  call.end();
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  return { status: response.statusCode, body: await text(response) };
}
const withAndWithout = (length: number): Record<string, string>[] => [{}, { 'content-length': String(length) }];
const ofLength = (length: number) => JSON.stringify('x'.repeat(length - 2));

test('a body up to the limit is read as ever, with and without its length', async () => {
  const body = ofLength(LIMIT);
  for (const headers of withAndWithout(LIMIT))
    expect(await send([body.slice(0, 300), body.slice(300)], headers)).toEqual({
      status: 200,
      body: `{"read":${LIMIT}}`,
    });
  expect(seen).toEqual([]);
});

test('a longer body is handed over whole, and refused', async () => {
  const body = ofLength(LIMIT * 50);
  for (const headers of withAndWithout(body.length))
    expect((await send([body.slice(0, 300), body.slice(300)], headers)).body).toContain(
      `larger than ${LIMIT / 2 ** 20} MiB`,
    );
  expect(seen).toEqual([body.length, body.length]);
});

test('a call that is refused before its body is read is answered without the body', async () => {
  refusal = Object.assign(new Error('Too many calls.'), { statusCode: 429 });
  const call = request({
    port,
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-length': '900' },
  });
  call.write('"begin');
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  expect([response.statusCode, response.headers.connection]).toEqual([429, 'close']);
  call.destroy();
});
