import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { createServer } from '#kernel/node-http.ts';
import { newIdentity } from '#runtimes/contract/fixture.ts';
import type { ExecRequest, Handle } from '#runtimes/runtime.ts';
import { RECORD_KEY } from './api-server.fixture.ts';
import { Connection } from './connection.ts';
import { execInService } from './exec.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const POD = {
  metadata: { name: 'p', namespace: 'n', labels: {} },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
};

/** Runs a program in a cluster that has one pod, and that ends the program with this message. */
async function endedWith(end: string, changes: Partial<ExecRequest> = {}) {
  const server = createServer(
    (_request, response) => void response.end(JSON.stringify({ metadata: {}, items: [POD] })),
  );
  new WebSocketServer({ server }).on('connection', (socket) => socket.send(Buffer.from(`\x03${end}`)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const access = { server: `http://127.0.0.1:${port}`, serverName: null, authorities: null, insecure: false, certificate: null, token: 't' }; // prettier-ignore
  const connection = new Connection({ access, policy: async () => ['127.0.0.1'] });
  closing.push(() => {
    server.closeAllConnections();
    server.close();
    return connection.close();
  });
  const identity = newIdentity('test');
  const handle: Handle = { format: 1, runtime: 'kubernetes', identity, data: {} };
  const request = { command: ['a'], environment: {}, stdout: new PassThrough(), ...changes };
  return execInService(
    { connection, installation: 'test', recordKey: RECORD_KEY },
    handle,
    request,
    AbortSignal.timeout(5_000),
  );
}

test.each([
  ['{"status":"Success"}', 0],
  ['{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}', 7],
])('a program whose end is told as %s has that exit status', async (end, exitCode) => {
  expect(await endedWith(end)).toMatchObject({ exitCode });
});

test.each([
  '',
  'no JSON',
  'null',
  '7',
  '{"details":{"causes":{}}}',
  '{"details":{"causes":[null,{"reason":"ExitCode","message":7}]}}',
])('a hostile end is an error of the program and harms nobody: %j', async (end) => {
  await expect(endedWith(end)).rejects.toMatchObject({ name: 'RuntimeError', code: 'failed' });
});

test.each<[string, Partial<ExecRequest>]>([
  ['of several lines', { environment: { KEY: 'a\nPATH=/tmp' } }],
  ['with a name that is none', { environment: { 'A B': 'a' } }],
  ['on a terminal, which would show them', { environment: { KEY: 'a' }, terminal: { columns: 80, rows: 24 } }],
])('variables %s are refused before the program starts', async (_name, changes) => {
  await expect(endedWith('{"status":"Success"}', changes)).rejects.toMatchObject({
    code: 'refused',
    message: expect.stringContaining('set them on the service'),
  });
});
