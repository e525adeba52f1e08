import { once } from 'node:events';
import {
  createServer as createPlainServer,
  request,
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect as connectTcp, type AddressInfo, type Server, type Socket as Connection } from 'node:net';
import { afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { pino } from 'pino';
import { newId } from '#kernel/ids.ts';
import { RateLimiter } from '#platform/access/rate-limit.ts';
import { sql } from '#platform/database/index.ts';
import { defineRoute } from '#platform/http/route.ts';
import { createServer } from '#platform/http/server.ts';
import { Type } from '#platform/http/schema.ts';
import { ApiAnnouncement } from '#platform/machines/directory.ts';
import { requireMachine } from '#platform/machines/elsewhere.ts';
import { PASS_HEADER } from '#platform/machines/pass.ts';
import { defineSocket } from '#platform/sockets/index.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { useApp, type Actor } from '#test/harness/app.ts';
import { selfSigned } from '#test/harness/self-signed.ts';
import { connect, listen } from '#test/harness/sockets.ts';
import { sessionsThatWait } from '#test/harness/waiting.ts';

const [HERE, THERE] = [newId(), newId()];
const app = useApp();
let admin: Actor;
beforeAll(async () => {
  admin = await app.organization();
  await app.db
    .insertInto('node')
    .values([
      { id: HERE, name: 'here' },
      { id: THERE, name: 'there' },
    ])
    .execute();
});
afterEach(() => app.db.updateTable('node').set({ api_url: null }).execute());

const Text = Type.Object({ text: Type.String() });

/** Starts the API process of a machine. Its routes and its socket are for the machine THERE. */
function startApi(machine: string) {
  const handled: string[] = [];
  const statuses: number[] = [];
  const of = { tag: 'Test', summary: 'Test', description: 'Test', target: organizationTarget } as const;
  const routes = [
    defineRoute({
      ...of,
      id: 'echo',
      method: 'POST',
      path: '/organization/{organizationId}/echo',
      action: 'organization.read',
      body: Text,
      answer: { status: 201, body: Text },
      handler: ({ body }) => {
        requireMachine(machine, THERE);
        handled.push(body.text);
        return { text: `${body.text} ${handled.length}` };
      },
    }),
    defineRoute({
      ...of,
      id: 'plan',
      method: 'POST',
      path: '/organization/{organizationId}/plan',
      action: 'organization.read',
      transaction: false,
      answer: { status: 201, body: Text },
      handler: () => {
        requireMachine(machine, THERE);
        handled.push('plan');
        return { text: `plan ${handled.length}` };
      },
    }),
    defineRoute({
      ...of,
      id: 'readText',
      method: 'GET',
      path: '/organization/{organizationId}/text',
      action: 'organization.read',
      answer: { status: 200, body: Text },
      handler: () => {
        requireMachine(machine, THERE);
        return { text: 'kept' };
      },
    }),
    defineRoute({
      ...of,
      id: 'dropText',
      method: 'DELETE',
      path: '/organization/{organizationId}/text',
      action: 'organization.read',
      answer: { status: 204, body: null },
      handler: () => requireMachine(machine, THERE),
    }),
    defineRoute({
      ...of,
      id: 'failText',
      method: 'GET',
      path: '/organization/{organizationId}/failure',
      action: 'organization.read',
      answer: { status: 200, body: Text },
      handler: () => {
        requireMachine(machine, THERE);
        throw new Error('of the inside');
      },
    }),
  ];
  const sockets = [
    defineSocket({
      id: 'say',
      path: '/say',
      summary: 'Test',
      frames: 'text',
      target: { ...organizationTarget, param: 'organization' },
      action: 'organization.read',
      open: () => {
        requireMachine(machine, THERE);
        return async (peer) => {
          await peer.send('hello');
          await once(peer.signal, 'abort');
        };
      },
    }),
  ];
  const server = createServer({
    platform: app.platform,
    sessions: null,
    limiter: new RateLimiter(app.db, 0),
    routes,
    sockets,
    log: pino({ level: 'silent' }),
    onAnswer: (_route, _method, status) => statuses.push(status),
  });
  onTestFinished(() => server.close());
  return { server, handled, statuses };
}

async function announce(url: string) {
  const announcement = new ApiAnnouncement(app.db, THERE, url, app.platform.log);
  onTestFinished(() => announcement.stop());
  await announcement.start();
}

/** Starts the API of both machines, and announces the one that can answer. */
async function startBoth() {
  const [here, there] = [startApi(HERE), startApi(THERE)];
  await there.server.listen({ host: '127.0.0.1', port: 0 });
  await announce(`http://127.0.0.1:${(there.server.server.address() as AddressInfo).port}`);
  const ask = (method: 'GET' | 'HEAD' | 'POST' | 'DELETE', path: string, headers = {}, payload?: object) =>
    here.server.inject({
      method,
      url: `/api/v1/organization/${admin.organizationId}/${path}`,
      headers: { authorization: `Token ${admin.token}`, ...headers },
      ...(payload ? { payload } : {}),
    });
  return { here, there, ask };
}

/** Starts a server in the place of the other machine's API, and announces it. Returns the connections that it has. */
async function pretend(server: Server, scheme = 'http', host = '127.0.0.1') {
  const connections = new Set<Connection>();
  server.on('connection', (socket: Connection) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of connections) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  await announce(`${scheme}://${host}:${(server.address() as AddressInfo).port}`);
  return connections;
}

const pretendToAnswer = (answer: (request: IncomingMessage, response: ServerResponse) => void) =>
  pretend(createPlainServer(answer));

/** Asks the API of this machine, over a real connection, for what the other one has. */
async function askHere() {
  const here = startApi(HERE);
  const url = (await listen(here)).replace('ws:', 'http:');
  const sent = request(`${url}/organization/${admin.organizationId}/text`, {
    headers: { authorization: `Token ${admin.token}` },
  });
  sent.on('error', () => undefined).end();
  return { here, sent };
}

async function answerHere(): Promise<IncomingMessage> {
  const [answer] = await once((await askHere()).sent, 'response');
  return answer as IncomingMessage;
}

/** Opens the web socket of this machine's API without a client of its own. */
async function openHere(here: Pick<ReturnType<typeof startApi>, 'server'>): Promise<ClientRequest> {
  const url = (await listen(here)).replace('ws:', 'http:');
  const opening = request(`${url}/say?organization=${admin.organizationId}`, {
    agent: false,
    headers: {
      authorization: `Token ${admin.token}`,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    },
  });
  opening.on('error', () => undefined).end();
  return opening;
}

const connectionsOf = ({ server }: ReturnType<typeof startApi>): Promise<number> =>
  new Promise((resolve, reject) =>
    server.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );

test('a body and an Idempotency-Key go on with the request: the other machine does it once', async () => {
  const { here, there, ask } = await startBoth();
  const key = { 'idempotency-key': newId(), expect: '100-continue' };
  const [first, again] = [
    await ask('POST', 'echo', key, { text: 'möchte' }),
    await ask('POST', 'echo', key, { text: 'möchte' }),
  ];
  expect([first.statusCode, first.json()]).toEqual([201, { text: 'möchte 1' }]);
  expect([again.statusCode, again.json()]).toEqual([201, { text: 'möchte 1' }]);
  expect([here.handled, there.handled]).toEqual([[], ['möchte']]);
});

test('a request without a transaction leaves no Idempotency-Key behind that the other machine would wait for', async () => {
  const { there, ask } = await startBoth();
  const key = { 'idempotency-key': newId() };
  const answers = [await ask('POST', 'plan', key), await ask('POST', 'plan', key)];
  expect(answers.map((answer) => [answer.statusCode, answer.json()])).toEqual([
    [201, { text: 'plan 1' }],
    [201, { text: 'plan 1' }],
  ]);
  expect(there.handled).toEqual(['plan']);
});

test('a HEAD, which no route takes, is refused here', async () => {
  const { there, ask } = await startBoth();
  const refused = await ask('HEAD', 'text');
  expect([refused.statusCode, refused.headers.allow]).toEqual([405, 'DELETE, GET']);
  expect(there.statuses).toEqual([]);
});

test('an ETag is that of the other machine, with which a second read is 304 without a body, and a 204 has none', async () => {
  const { ask } = await startBoth();
  const first = await ask('GET', 'text');
  expect([first.statusCode, first.json()]).toEqual([200, { text: 'kept' }]);
  const { etag } = first.headers;
  const again = await ask('GET', 'text', { 'if-none-match': etag });
  expect([again.statusCode, again.body, again.headers.etag]).toEqual([304, '', etag]);
  const dropped = await ask('DELETE', 'text');
  expect([dropped.statusCode, dropped.body]).toEqual([204, '']);
});

test('an error of the other machine names the request by the id that its header has', async () => {
  const { ask } = await startBoth();
  const failed = await ask('GET', 'failure');
  expect(failed.statusCode).toBe(500);
  expect(failed.body).toContain(String(failed.headers['x-request-id']));
  expect(failed.body).not.toContain('of the inside');
});

test('headers of a connection are not sent on, in neither direction', async () => {
  let seen: IncomingMessage['headers'] = {};
  await pretendToAnswer(({ headers }, response) => {
    seen = headers;
    response.writeHead(200, { connection: 'close, x-private', 'x-private': 'a', 'x-public': 'b' }).end('{}');
  });
  const { server } = startApi(HERE);
  const answer = await server.inject({
    method: 'GET',
    url: `/organization/${admin.organizationId}/text`,
    headers: {
      authorization: `Token ${admin.token}`,
      connection: 'x-mine',
      'x-mine': '1',
      te: 'trailers',
      'x-other': '2',
      [PASS_HEADER]: 'forged',
    },
  });
  expect(seen).toMatchObject({ authorization: `Token ${admin.token}`, 'x-other': '2' });
  for (const name of ['x-mine', 'te']) expect(seen).not.toHaveProperty(name);
  expect(seen[PASS_HEADER]).not.toBe('forged');
  expect(answer.headers).toMatchObject({ 'x-public': 'b' });
  expect(answer.headers).not.toHaveProperty('x-private');
});

test('an answer of any size is passed on whole, no faster than its client reads', async () => {
  const part = Buffer.alloc(64 * 1024, 'x');
  const parts = 1024;
  let written = 0;
  await pretendToAnswer(async (_request, response) => {
    for (; written < parts; written++) if (!response.write(part)) await once(response, 'drain');
    response.end();
  });
  const answer = await answerHere();
  let before = 0;
  const isHalted = () => before === (before = written) && written > 0;
  await expect.poll(isHalted, { interval: 200 }).toBe(true);
  expect(written).toBeLessThan(parts);
  let bytes = 0;
  for await (const chunk of answer) bytes += (chunk as Buffer).length;
  expect(bytes).toBe(parts * part.length);
});

test.each([{ 'content-length': '1000' }, {}])(
  'an answer that breaks off there breaks off here: no half looks whole (%o)',
  async (headers) => {
    const connections = await pretendToAnswer((_request, response) => {
      response.writeHead(200, headers as Record<string, string>).write('half');
    });
    const answer = await answerHere();
    await once(answer, 'readable');
    expect(String(answer.read())).toBe('half');
    for (const connection of connections) connection.destroy();
    await expect(answer.toArray()).rejects.toThrow('aborted');
  },
);

const EVENTS = { 'content-type': 'text/event-stream; charset=utf-8' };

test('a client that takes nothing of a stream for a minute is cut off, and its request on the other machine ends', async () => {
  const part = `data: ${'x'.repeat(64 * 1024)}\n\n`;
  let written = 0;
  const connections = await pretendToAnswer(async (request, response) => {
    const left = new AbortController();
    request.socket.once('close', () => left.abort());
    response.writeHead(200, EVENTS);
    for (; !left.signal.aborted; written++)
      if (!response.write(part)) await once(response, 'drain', { signal: left.signal }).catch(() => undefined);
  });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const answer = await answerHere();
  const ended = new Promise((resolve) => answer.pause().once('close', resolve));
  answer.on('error', () => undefined);
  let before = 0;
  const isHalted = () => before === (before = written) && written > 0;
  for (let calm = 0; calm < 20; calm = isHalted() ? calm + 1 : 0) await new Promise((turn) => setImmediate(turn));
  vi.advanceTimersByTime(50_000);
  await new Promise((turn) => setImmediate(turn));
  expect(connections.size).toBe(1);
  vi.advanceTimersByTime(60_000);
  vi.useRealTimers();
  await expect.poll(() => connections.size).toBe(0);
  answer.resume();
  await ended;
  expect(answer.complete).toBe(false);
});

test('the last event of a stream that breaks off stands for itself, also behind half of a long one', async () => {
  const half = `data: ${'x'.repeat(3 * 1024 * 1024)}`;
  const connections = await pretendToAnswer((_request, response) => {
    response.writeHead(200, EVENTS).write(half);
  });
  const answer = await answerHere();
  let text = '';
  answer.setEncoding('utf8').on('data', (part) => (text += String(part)));
  await expect.poll(() => text.length).toBeGreaterThan(2 * 1024 * 1024);
  for (const connection of connections) connection.destroy();
  await once(answer, 'end');
  const events = text.split('\n\n');
  expect(half.startsWith(events[0]!)).toBe(true);
  expect(events.slice(1)).toEqual([expect.stringMatching(/^event: end\ndata: {"status":502,/), '']);
});

test('a client that leaves ends its request on the other machine', async () => {
  const asked = Promise.withResolvers<void>();
  const connections = await pretendToAnswer(() => asked.resolve());
  const { sent } = await askHere();
  await asked.promise;
  expect(connections.size).toBe(1);
  sent.destroy();
  await expect.poll(() => connections.size).toBe(0);
});

test('a client that leaves while the other machine is looked up asks nothing of it', async () => {
  let asked = 0;
  const server = createPlainServer(() => asked++).on('upgrade', () => asked++);
  await pretend(server);
  const locked = Promise.withResolvers<void>();
  const free = Promise.withResolvers<void>();
  const holding = app.db.transaction().execute(async (inside) => {
    await sql`lock table node in access exclusive mode`.execute(inside);
    locked.resolve();
    await free.promise;
  });
  await locked.promise;
  const { here, sent } = await askHere();
  await expect.poll(() => sessionsThatWait(app.db)).toBe(1);
  const opening = await openHere(here);
  await expect.poll(() => sessionsThatWait(app.db)).toBe(2);
  sent.destroy();
  opening.socket!.resetAndDestroy();
  await expect.poll(() => connectionsOf(here)).toBe(0);
  free.resolve();
  await holding;
  await here.server.close();
  expect(asked).toBe(0);
});

test('a socket whose client breaks off was opened once, and is closed on the other machine', async () => {
  const { here, there } = await startBoth();
  const client = await connect(here, '/say', { organization: admin.organizationId }, { token: admin.token });
  await expect.poll(() => client.texts()).toEqual(['hello']);
  const { _socket: connection } = client.socket as unknown as { _socket: Connection };
  connection.resetAndDestroy();
  await there.server.close();
  await here.server.close();
  expect([here.statuses, there.statuses]).toEqual([[101], [101]]);
});

test.each(['destroy', 'resetAndDestroy'] as const)('a socket whose machine dies breaks off here (%s)', async (die) => {
  const server = createPlainServer().on('upgrade', (_request, socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'),
  );
  const connections = await pretend(server);
  const [, socket] = await once(await openHere(startApi(HERE)), 'upgrade');
  (socket as Connection).resume();
  for (const connection of connections) connection[die]();
  await once(socket as Connection, 'close');
});

test('a refusal of a socket by the other machine is answered whole, and waits for neither side to close', async () => {
  const connections = await pretendToAnswer((_request, response) => response.writeHead(418).end('{"message": "no"}'));
  const here = startApi(HERE);
  const { hostname: host, port } = new URL(await listen(here));
  const client = connectTcp({ host, port: Number(port), allowHalfOpen: true });
  onTestFinished(() => void client.destroy());
  client.write(
    `GET /say?organization=${admin.organizationId} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Token ${admin.token}\r\n` +
      'connection: Upgrade\r\nupgrade: websocket\r\n\r\n',
  );
  let said = '';
  client.on('data', (data) => (said += String(data)));
  await once(client, 'end');
  expect(said).toMatch(/^HTTP\/1\.1 418 .*\r\n\r\n{"message": "no"}$/s);
  await expect.poll(() => connectionsOf(here)).toBe(0);
  await expect.poll(() => connections.size).toBe(0);
  expect(here.statuses).toEqual([418]);
});

test('the answer says what is wrong with the URL of the other machine: nothing listens, no such name, no trusted certificate', async () => {
  const { server } = startApi(HERE);
  const message = async () =>
    (
      await server.inject({
        method: 'GET',
        url: `/organization/${admin.organizationId}/text`,
        headers: { authorization: `Token ${admin.token}` },
      })
    ).json().message;
  // A name with several addresses: the error of Node has no text of its own.
  await announce('http://localhost:1');
  expect(await message()).toMatch(/localhost:1 could not be reached: .*ECONNREFUSED/);
  await announce('http://quarterdeck.invalid');
  expect(await message()).toContain('The name quarterdeck.invalid does not resolve.');
  await pretend(createTlsServer(selfSigned()), 'https', 'localhost');
  expect(await message()).toMatch(/The certificate of localhost:\d+ is not trusted: self-signed certificate/);
  await pretend(createPlainServer(), 'https', 'localhost');
  expect(await message()).toMatch(/could not be reached: .*(SSL|EPROTO|TLS)/i);
});
