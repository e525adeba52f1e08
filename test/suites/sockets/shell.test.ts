import { createServer, type AddressInfo, type Server } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { json } from '#platform/database/json.ts';
import {
  RuntimeError,
  type ExecRequest,
  type InstanceEndpoints,
  type InstancePort,
  type Runtime,
} from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';
import { connect, refusal } from '#test/harness/sockets.ts';

/** Stand-in for the runtime's `exec`; real runtimes have their own contract (src/runtimes/contract/executing.ts). */
let exec: Runtime['exec'];
let endpoints: InstanceEndpoints[] = [];
let openPort: Runtime['openPort'];
const runtimeOf = async () =>
  ({ exec, endpoints: async () => endpoints, ...(openPort ? { openPort } : {}) }) as unknown as Runtime;
const app = useApp({}, { runtimeOf });

let admin: Actor;
let service: string;
let echo: Server;
beforeAll(async () => {
  admin = await app.organization();
  service = (await makeExample(admin)).application.id;
  await app.db
    .updateTable('service')
    .set({ handle: json({ format: 1, runtime: 'fake', identity: {}, data: {} }) as never })
    .where('id', '=', service)
    .execute();
  echo = createServer({ allowHalfOpen: true }, (connection) => connection.pipe(connection));
  await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
  const { port } = echo.address() as AddressInfo;
  endpoints = [
    { instance: 'a-1', ports: [{ internalPort: 3000, address: '127.0.0.1', port }] },
    { instance: 'a-2', ports: [{ internalPort: 3000, address: '127.0.0.1', port: 1 }] },
  ];
});
afterAll(() => void echo.close());

const as = () => ({ token: admin.token });
const shell = (query: Record<string, unknown> = {}) =>
  connect(app, '/shell/exec', { service, command: ['sh', '-c', 'x'], ...query }, as());
const events = async () =>
  ok(await admin.get(`/organization/${admin.organizationId}/events?pageSize=100`), 200).events.filter((event: any) =>
    ['SHELL', 'PORT_FORWARD', 'REMOTE_DEBUG'].includes(event.event_type),
  );

test('/shell/exec runs the arguments as they are and carries bytes both ways, the end of the input and the exit status', async () => {
  let asked: ExecRequest | undefined;
  exec = async (_handle, request) => {
    asked = request;
    for await (const part of request.stdin!) request.stdout.write(Buffer.concat([Buffer.from('>'), part as Buffer]));
    await new Promise<void>((resolve) => request.stderr!.write('error', () => resolve()));
    return { exitCode: 3, stderr: '' };
  };
  const client = await shell({ tty_width: 0, tty_height: 0 });
  client.socket.send(Buffer.from([0xff, 0x00]));
  await expect.poll(() => client.bytes().length).toBe(3);
  client.socket.send(Buffer.from([0x04]));
  expect(await client.closed).toEqual({ code: 1000, reason: 'exit status 3' });
  expect(client.bytes()).toEqual(Buffer.concat([Buffer.from('>'), Buffer.from([0xff, 0x00]), Buffer.from('error')]));
  expect(asked).toMatchObject({ command: ['sh', '-c', 'x'], environment: {} });
  expect(asked!.terminal).toBeUndefined();
});

test('/shell/exec ends the input at its mark, too, where the program reads that late, together with data', async () => {
  const arrived = Promise.withResolvers<void>();
  const taken: Buffer[] = [];
  exec = async (_handle, request) => {
    for await (const part of request.stdin!) {
      taken.push(part as Buffer);
      await arrived.promise;
    }
    return { exitCode: 0, stderr: '' };
  };
  const client = await shell();
  const sent = (data: string | Buffer) => new Promise<void>((resolve) => client.socket.send(data, () => resolve()));
  const parts = Array.from({ length: 5 }, (_, at) => Buffer.alloc(20_001, 97 + at));
  await sent(parts[0]!);
  await expect.poll(() => taken.length).toBe(1);
  await Promise.all([...parts.slice(1).map(sent), sent(Buffer.from([0x04])), sent('more')]);
  arrived.resolve();
  expect(await client.closed).toEqual({ code: 1000, reason: 'exit status 0' });
  expect(Buffer.concat(taken).equals(Buffer.concat(parts))).toBe(true);
});

test('/shell/exec hands the size of a terminal over, and the byte that ends input with it', async () => {
  let asked: ExecRequest | undefined;
  exec = async (_handle, request) => {
    asked = request;
    for await (const part of request.stdin!) if ((part as Buffer)[0] === 4) return { exitCode: 0, stderr: '' };
    return { exitCode: 1, stderr: '' };
  };
  const client = await shell({ tty_width: 91, tty_height: 37, pod_name: 'a-1' });
  client.socket.send('\u0004');
  expect(await client.closed).toEqual({ code: 1000, reason: 'exit status 0' });
  expect(asked).toMatchObject({ terminal: { columns: 91, rows: 37 }, instance: 'a-1' });
});

test('a shell whose client leaves, or whose token is revoked, is ended', async () => {
  let aborted = 0;
  exec = (_handle, _request, signal) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => {
        aborted++;
        reject(new Error('aborted'));
      }),
    );
  const client = await shell();
  client.socket.terminate();
  await expect.poll(() => aborted).toBe(1);
  const url = `/organization/${admin.organizationId}/apiToken`;
  const { id, token } = ok(await admin.post(url, { name: 'shell', description: '', scope: 'WRITE' }), 201);
  const other = await connect(app, '/shell/exec', { service, command: ['sh'] }, { token });
  ok(await admin.delete(`${url}/${id}`), 204);
  expect((await other.closed).code).toBe(1008);
  expect(aborted).toBe(2);
});

test('each shell and each forwarded port is an audit event that names who and where, not the arguments', async () => {
  exec = async () => ({ exitCode: 0, stderr: '' });
  const before = (await events()).length;
  await (
    await shell({ command: ['psql', '--password=hunter2'] })
  ).closed;
  const forwarded = await connect(app, '/shell/portforward', { service, port: 3000, LocalPort: 5432 }, as());
  forwarded.socket.close();
  const [second, first] = (await events()).slice(0, (await events()).length - before);
  expect(first).toMatchObject({ event_type: 'SHELL', target_type: 'APPLICATION', target_id: service });
  expect(JSON.parse(first.change)).toEqual({ program: 'psql', instance: null });
  expect(JSON.stringify([first, second])).not.toContain('hunter2');
  expect(second).toMatchObject({ event_type: 'PORT_FORWARD', target_id: service });
  expect(JSON.parse(second.change)).toEqual({ port: 3000, local_port: 5432, instance: null });
});

test('what cannot be is refused before anything is opened or recorded', async () => {
  exec = async () => ({ exitCode: 0, stderr: '' });
  const before = (await events()).length;
  const of = async (path: string, query: Record<string, unknown>) => {
    const { status, body } = await refusal(app, path, { service, ...query }, as());
    return [status, body.message];
  };
  expect(await of('/shell/exec', {})).toEqual([400, 'command: is required']);
  expect(await of('/shell/exec', { 'command[1]': 'x' })).toEqual([400, expect.stringContaining('command[0]')]);
  expect(await of('/shell/exec', { command: ['sh'], tty_width: 80 })).toEqual([
    400,
    expect.stringContaining('tty_height'),
  ]);
  expect(await of('/shell/exec', { command: ['sh'], container_name: 'other' })).toEqual([
    400,
    expect.stringContaining('container_name'),
  ]);
  expect(await of('/shell/ephemeral', { command: ['sh'] })).toEqual([400, expect.stringContaining('/shell/exec')]);
  expect(await of('/shell/portforward', {})).toEqual([400, 'port: is required']);
  expect(await of('/shell/portforward', { port: 5432 })).toEqual([400, expect.stringContaining('3000')]);
  expect(await of('/shell/portforward', { port: 3000, pod_name: 'a-2' })).toEqual([
    409,
    expect.stringContaining('does not accept'),
  ]);
  expect(await of('/shell/portforward', { port: 3000, pod_name: 'b' })).toEqual([
    409,
    expect.stringContaining('/service/pods'),
  ]);
  expect(await of('/shell/portforward', { port: 3000, service_type: 'DATABASE' })).toEqual([
    400,
    'service_type: must be APPLICATION, which the service is',
  ]);
  expect((await events()).length).toBe(before);
});

test('/shell/portforward carries what is sent in frames of at most 32,768 bytes', async () => {
  const query = { service, port: 3000, service_type: 'APPLICATION', LocalPort: 1 };
  const client = await connect(app, '/shell/portforward', query, as());
  const data = Buffer.alloc(1_000_000, 'abcdefghij');
  client.socket.send(data);
  await expect.poll(() => client.bytes().length).toBe(data.length);
  expect(client.bytes().equals(data)).toBe(true);
  expect(Math.max(...client.frames.map(({ length }) => length))).toBeLessThanOrEqual(32_768);
  client.socket.close();
  await client.closed;
});

test('/shell/portforward takes no text, and tells its client when the service hangs up', async () => {
  const query = { service, port: 3000 };
  const text = await connect(app, '/shell/portforward', query, as());
  text.socket.send('text');
  expect((await text.closed).code).toBe(1003);
  const closing = createServer((connection) => void connection.end('bye'));
  await new Promise<void>((resolve) => closing.listen(0, '127.0.0.1', resolve));
  const all = endpoints;
  endpoints = [
    {
      instance: 'c',
      ports: [{ internalPort: 3000, address: '127.0.0.1', port: (closing.address() as AddressInfo).port }],
    },
  ];
  const client = await connect(app, '/shell/portforward', query, as());
  expect(await client.closed).toEqual({ code: 1000, reason: '' });
  expect(String(client.bytes())).toBe('bye');
  endpoints = all;
  closing.close();
});

test('/shell/portforward goes through the cluster where instances are not reached from here', async () => {
  const asked: InstancePort[] = [];
  openPort = async (_handle, port) => {
    asked.push(port);
    if (port.instance === 'a-2') throw new RuntimeError('failed', 'The cluster opens no connection.');
    return new PassThrough();
  };
  try {
    const client = await connect(app, '/shell/portforward', { service, port: 3000, pod_name: 'a-1' }, as());
    client.socket.send(Buffer.from('through'));
    await expect.poll(() => String(client.bytes())).toBe('through');
    client.socket.close();
    await client.closed;
    const refused = await refusal(app, '/shell/portforward', { service, port: 3000, pod_name: 'a-2' }, as());
    expect([refused.status, refused.body.message]).toEqual([409, 'The cluster opens no connection.']);
    expect((await refusal(app, '/shell/portforward', { service, port: 1 }, as())).status).toBe(400);
    expect(asked.map(({ instance, port }) => [instance, port])).toEqual([
      ['a-1', 3000],
      ['a-2', 3000],
    ]);
  } finally {
    openPort = undefined;
  }
});

test('/service/pods sends one frame and closes with 1000', async () => {
  const client = await connect(app, '/service/pods', { service, service_type: 'APPLICATION' }, as());
  expect((await client.closed).code).toBe(1000);
  expect(client.texts().map((text) => JSON.parse(text))).toEqual([
    {
      Pods: [
        { Name: 'a-1', Ports: [3000] },
        { Name: 'a-2', Ports: [3000] },
      ],
    },
  ]);
});
