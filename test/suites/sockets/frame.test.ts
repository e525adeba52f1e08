import { request } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { allSockets } from '#app/sockets.ts';
import { ACTIONS, includes, LEVELS } from '#platform/access/actions.ts';
import type { Socket } from '#platform/sockets/index.ts';
import { ok, startTestApp, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';
import { connect, listen, refusal, search } from '#test/harness/sockets.ts';

const app = useApp({ QUARTERDECK_SOCKETS_PER_CALLER: '3' }, { socketPingMs: 300 });
/** Descriptions of all sockets; the tests call those of `app`. */
const SOCKETS = allSockets();

let admin: Actor;
let stranger: Actor;
let ids: Record<string, string>;
beforeAll(async () => {
  admin = await app.organization();
  stranger = await app.organization();
  const { project, environment, application } = await makeExample(admin);
  ids = {
    organization: admin.organizationId,
    project: project.id,
    environment: environment.id,
    cluster: environment.cluster_id,
    service: application.id,
  };
});

/** Returns a query that asks a socket for a thing of the administrator. */
const queryOf = (socket: Pick<Socket, 'query'>): Record<string, unknown> => ({ ...ids, ...EXAMPLES(socket) });
const EXAMPLES = ({ query }: Pick<Socket, 'query'>): Record<string, unknown> =>
  query && 'command' in query.properties ? { command: ['true'], tty_width: 0, tty_height: 0 } : {};

const status = () => ({ path: '/service/status', query: { ...ids } });

describe.each(SOCKETS.map((socket) => [socket.path, socket] as const))('%s', (path, socket) => {
  test('refuses who has no token', async () => {
    expect(await refusal(app, path, queryOf(socket))).toMatchObject({ status: 401, body: { status: 401 } });
  });

  test('refuses a token that is none', async () => {
    expect(await refusal(app, path, queryOf(socket), { token: 'qd_none' })).toMatchObject({ status: 401 });
  });

  test('knows nothing of another organization', async () => {
    const { status, body } = await refusal(app, path, queryOf(socket), { token: stranger.token });
    expect([status, body.message]).toEqual([404, `${socket.target.name} not found.`]);
    const named = { ...queryOf(socket), organization: stranger.organizationId };
    expect(await refusal(app, path, named, { token: stranger.token })).toMatchObject({ status: 404 });
    expect(await refusal(app, path, named, { token: admin.token })).toMatchObject({ status: 404 });
  });

  test('takes the permission that it names', async () => {
    const level = ACTIONS[socket.action];
    for (const scope of LEVELS.filter((one) => one !== 'NONE' && !includes(one, level))) {
      const { token } = await admin.withScope(scope as 'READ');
      const { status, body } = await refusal(app, path, queryOf(socket), { token });
      expect([status, body.message]).toEqual([403, expect.stringContaining(socket.action)]);
    }
  });

  test('tells which id is missing, malformed or of another place', async () => {
    const { [socket.target.param]: _id, ...without } = queryOf(socket);
    const ask = async (query: Record<string, unknown>) => {
      const { status, body } = await refusal(app, path, query, { token: admin.token });
      return [status, body.message];
    };
    expect(await ask(without)).toEqual([400, `${socket.target.param}: is required`]);
    expect(await ask({ ...queryOf(socket), [socket.target.param]: 'x' })).toEqual([
      400,
      `${socket.target.param}: must be a lower-case UUID`,
    ]);
    if (socket.target.param !== 'cluster')
      expect(await ask({ ...queryOf(socket), cluster: ids['project'] })).toEqual([
        404,
        `${socket.target.name} not found.`,
      ]);
  });

  test('closes a browser with 1008 for each of these', async () => {
    const close = async (token: string) => {
      const client = await connect(app, path, queryOf(socket), { protocols: ['v1', `auth.bearer.${token}`] });
      return [client.protocol, (await client.closed).code];
    };
    expect(await close('qd_none')).toEqual(['v1', 1008]);
    expect(await close(stranger.token)).toEqual(['v1', 1008]);
  });
});

test('a socket takes its token as Token, as Bearer and as a subprotocol, with and without the prefix of the API', async () => {
  const { path, query } = status();
  for (const of of [
    { token: admin.token },
    { options: { headers: { authorization: `Bearer ${admin.token}` } } },
    { protocols: ['v1', `auth.bearer.${admin.token}`] },
  ]) {
    const client = await connect(app, `/api/v1${path}`, query, of);
    expect(client.protocol).toBe('protocols' in of ? 'v1' : '');
    expect(await client.frame()).toMatchObject({ environment: { id: ids['environment'] } });
    client.socket.close();
    await client.closed;
  }
});

test('a token that is revoked closes its sockets with 1008', async () => {
  const { path, query } = status();
  const token = ok(
    await admin.post(`/organization/${admin.organizationId}/apiToken`, {
      name: 'short',
      description: '',
      scope: 'READ',
    }),
    201,
  );
  const client = await connect(app, path, query, { token: token.token });
  await client.frame();
  ok(await admin.delete(`/organization/${admin.organizationId}/apiToken/${token.id}`), 204);
  expect((await client.closed).code).toBe(1008);
});

test('a role that is withdrawn and a member who is removed close sockets with 1008', async () => {
  const { path } = status();
  const other = await app.organization();
  const { environment } = await makeExample(other);
  const open = async () => {
    const client = await connect(app, path, { environment: environment.id }, { token: other.token });
    await client.frame();
    return client;
  };
  const withdrawn = await open();
  const role = ok(await other.post(`/organization/${other.organizationId}/customRole`, { name: 'none' }), 201);
  const member = app.db.updateTable('member').where('organization_id', '=', other.organizationId);
  const { role_id: before } = await app.db
    .selectFrom('member')
    .select('role_id')
    .where('organization_id', '=', other.organizationId)
    .executeTakeFirstOrThrow();
  await member.set({ role_id: role.id }).execute();
  expect((await withdrawn.closed).code).toBe(1008);
  await member.set({ role_id: before }).execute();
  const removed = await open();
  await app.db.deleteFrom('member').where('organization_id', '=', other.organizationId).execute();
  expect((await removed.closed).code).toBe(1008);
});

test('a caller has no more sockets than the setting allows', async () => {
  const { path, query } = status();
  const { token } = await admin.withScope('WRITE');
  const open = await Promise.all([1, 2, 3].map(() => connect(app, path, query, { token })));
  expect(await refusal(app, path, query, { token })).toMatchObject({ status: 429, headers: { 'retry-after': '10' } });
  const browser = await connect(app, path, query, { protocols: ['v1', `auth.bearer.${token}`] });
  expect((await browser.closed).code).toBe(1011);
  for (const { socket } of open) socket.close();
  await Promise.all(open.map(({ closed }) => closed));
  await expect
    .poll(async () => {
      const again = await connect(app, path, query, { token }).catch(() => undefined);
      again?.socket.close();
      return again !== undefined;
    })
    .toBe(true);
});

test('open sockets and event streams keep no requests of their organization out', async () => {
  const limits = {
    QUARTERDECK_REQUESTS_IN_FLIGHT_PER_CALLER: '2',
    QUARTERDECK_REQUESTS_IN_FLIGHT_PER_ORGANIZATION: '2',
  };
  const other = await startTestApp(limits);
  try {
    const owner = await other.organization();
    const { environment } = await makeExample(owner);
    const query = { environment: environment.id };
    const open = () => connect(other, '/service/status', query, { token: owner.token });
    const socket = await open();
    const stream = await fetch(
      `${(await listen(other)).replace('ws:', 'http:')}/organization/${owner.organizationId}/eventStream`,
      { headers: { authorization: `Token ${owner.token}` } },
    );
    expect(stream.status).toBe(200);
    expect(await refusal(other, '/service/status', query, { token: owner.token })).toMatchObject({
      status: 429,
      body: { message: expect.stringContaining('2 event streams, followed logs and web sockets open') },
    });
    ok(await owner.get(`/organization/${owner.organizationId}`), 200);
    await stream.body!.cancel();
    await expect
      .poll(() =>
        open().then(
          ({ socket: opened }) => opened.readyState,
          () => undefined,
        ),
      )
      .toBe(socket.socket.OPEN);
  } finally {
    await other.close();
  }
});

test('pages of other origins open no sockets', async () => {
  const { path, query } = status();
  const from = (origin: string) => ({ token: admin.token, options: { headers: { origin } } });
  expect(await refusal(app, path, query, from('https://evil.example'))).toMatchObject({ status: 403 });
  const own = await connect(app, path, query, from((await listen(app)).replace('ws:', 'http:')));
  own.socket.close();
  await own.closed;
});

test('a client that answers no ping is cut off, one that does stays', async () => {
  const { path, query } = status();
  const [deaf, awake] = await Promise.all([
    connect(app, path, query, { token: admin.token, options: { autoPong: false } }),
    connect(app, path, query, { token: admin.token }),
  ]);
  expect((await deaf.closed).code).toBe(1006);
  expect(awake.socket.readyState).toBe(awake.socket.OPEN);
  awake.socket.close();
  await awake.closed;
});

test('a message that is too large closes its socket with 1009, a malformed frame with 1002', async () => {
  const { path, query } = status();
  const large = await connect(app, path, query, { token: admin.token });
  large.socket.send(Buffer.alloc(1024 * 1024 + 1));
  expect((await large.closed).code).toBe(1009);
  const malformed = await connect(app, path, query, { token: admin.token });
  // Frame without a mask.
  (malformed.socket as unknown as { _socket: net.Socket })._socket.write(Buffer.from([0x81, 0x01, 0x41]));
  expect((await malformed.closed).code).toBe(1002);
});

test('a malformed handshake is answered with 400, another path with 404, and neither is a socket', async () => {
  const { hostname, port } = new URL(await listen(app));
  const ask = (path: string, headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const asked = request({ hostname, port, path, headers: { connection: 'upgrade', ...headers } });
      asked.on('response', (response) => (response.resume(), resolve(response.statusCode!)));
      asked.on('upgrade', () => reject(new Error('It was opened.')));
      asked.on('error', reject).end();
    });
  const authorization = `Token ${admin.token}`;
  const path = `/service/status?${search(ids)}`;
  expect(await ask(path, { upgrade: 'websocket', authorization })).toBe(400);
  expect(await ask('/service/none', { upgrade: 'websocket', authorization })).toBe(404);
  expect(await ask('/organization', { upgrade: 'websocket', authorization })).toBe(200);
  expect(await ask('/organization', { upgrade: 'h2c', 'http2-settings': 'AAMAAABkAAQAAP__', authorization })).toBe(200);
});

test('a server that closes tells its sockets with 1001 and does not wait for those that do not answer', async () => {
  const other = await startTestApp();
  try {
    const owner = await other.organization();
    const { environment } = await makeExample(owner);
    const query = { environment: environment.id };
    const client = await connect(other, '/service/status', query, { token: owner.token });
    await client.frame();
    const { port } = other.server.server.address() as AddressInfo;
    // Client that reads nothing at all.
    const silent = net.connect(port, '127.0.0.1');
    silent.write(
      `GET /service/status?${search(query)} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\nAuthorization: Token ${owner.token}\r\n\r\n`,
    );
    await new Promise((resolve) => silent.once('data', resolve));
    silent.pause();
    silent.on('error', () => undefined);
    await other.server.close();
    expect((await client.closed).code).toBe(1001);
    silent.destroy();
  } finally {
    await other.close();
  }
});
