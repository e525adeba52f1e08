import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createServer } from '#kernel/node-http.ts';
import type { AddressPolicy } from './access.ts';
import { Connection } from './connection.ts';
import { asRuntimeError } from './errors.ts';

const allow: AddressPolicy = async () => ['127.0.0.1'];

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Connects to a server that answers like this. */
async function connectTo(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  { policy = allow, path = '' }: { policy?: AddressPolicy; path?: string } = {},
): Promise<Connection> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const access = {
    server: `http://cluster.example:${port}${path}`,
    serverName: null,
    authorities: null,
    insecure: false,
    certificate: null,
    token: 't0ken',
  };
  const connection = new Connection({
    access,
    policy,
    callMs: 400,
    renewed: async () => ({ ...access, token: 'renewed' }),
  });
  closing.push(() => {
    server.closeAllConnections();
    server.close();
    return connection.close();
  });
  return connection;
}

describe('a call to an API server', () => {
  test('goes to a forbidden address only if the operator named it', async () => {
    const server = createServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(() => server.close());
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const access = { server: address, serverName: null, authorities: null, insecure: false, certificate: null, token: null }; // prettier-ignore
    const policy = () => Promise.reject(new Error('private'));
    const connection = new Connection({ access: { ...access, isOperators: true }, policy });
    closing.push(() => connection.close());
    expect(await connection.get('/version')).toEqual({});
    connection.use(access);
    await expect(connection.get('/version')).rejects.toThrow('private');
  });

  test('carries the token, its query and its body, below the path of the address', async () => {
    const seen: unknown[] = [];
    const connection = await connectTo(
      (request, response) => {
        const parts: Buffer[] = [];
        request.on('data', (part: Buffer) => parts.push(part));
        request.on('end', () => {
          seen.push([request.method, request.url, request.headers.authorization, String(Buffer.concat(parts))]);
          response.end('{"kind":"Pod"}');
        });
      },
      { path: '/k8s/clusters/c-1/' },
    );
    const call = { body: { a: 1 }, query: { force: true, fieldManager: 'quarterdeck' } };
    expect(await connection.call('PATCH', '/api/v1/pods/p', call)).toEqual({ kind: 'Pod' });
    expect(seen).toEqual([
      ['PATCH', '/k8s/clusters/c-1/api/v1/pods/p?force=true&fieldManager=quarterdeck', 'Bearer t0ken', '{"a":1}'],
    ]);
  });

  test.each([
    ['never answers', () => undefined],
    ['sends a head and nothing more', (response: ServerResponse) => response.writeHead(200).flushHeaders()],
    [
      'sends a byte now and then',
      (response: ServerResponse) => {
        const timer = setInterval(() => response.write(' '), 50);
        response.on('close', () => clearInterval(timer));
      },
    ],
  ])('ends in time where the server %s', async (_what, answer) => {
    const connection = await connectTo((_request, response) => {
      answer(response);
    });
    const error = asRuntimeError(await connection.get('/version').catch((failure: unknown) => failure));
    expect(error).toMatchObject({ code: 'unreachable', message: expect.stringContaining('does not answer') });
  });

  test('does not read an answer that would hold up others while it is parsed', async () => {
    const connection = await connectTo((_request, response) => void response.end(`"${'x'.repeat(4 * 2 ** 20)}"`));
    const error = asRuntimeError(await connection.get('/api/v1/pods').catch((failure: unknown) => failure));
    // The same call would get the same answer again: it is no outage, which would be waited for.
    expect(error).toMatchObject({
      code: 'failed',
      message: expect.stringMatching(
        /^The cluster's answer to GET \/api\/v1\/pods has more than 3 MiB and is not read/,
      ),
    });
  });

  test.each([
    [403, { reason: 'Forbidden', message: 'pods is forbidden' }, 'failed', 'quarterdeck cluster rbac'],
    [401, { reason: 'Unauthorized', message: 'Unauthorized' }, 'failed', 'replace the kubeconfig'],
    [422, { reason: 'Invalid', message: 'spec.replicas: must be 0 or more' }, 'failed', 'spec.replicas'],
    [500, { reason: 'InternalError', message: 'etcd is away' }, 'unreachable', 'etcd is away'],
    [502, '<html>Bad gateway</html>', 'unreachable', 'status 502'],
  ])('that is refused with %i says why and what to do', async (status, body, code, message) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const connection = await connectTo((_request, response) => void response.writeHead(status).end(text));
    const error = asRuntimeError(await connection.get('/api/v1/pods').catch((failure: unknown) => failure));
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
  });

  test('is sent once more with the credentials that have replaced those that are refused', async () => {
    const seen: unknown[] = [];
    const connection = await connectTo((request, response) => {
      seen.push(request.headers.authorization);
      const isRenewed = request.headers.authorization === 'Bearer renewed';
      response.writeHead(isRenewed ? 200 : 401).end('{"kind":"Status"}');
    });
    expect(await connection.get('/version')).toEqual({ kind: 'Status' });
    expect(await connection.get('/version')).toEqual({ kind: 'Status' });
    expect(seen).toEqual(['Bearer t0ken', 'Bearer renewed', 'Bearer renewed']);
  });

  test('goes only to addresses that the policy allows', async () => {
    let asked = 0;
    const connection = await connectTo((_request, response) => void response.end(String(++asked)), {
      policy: async (host) => {
        throw new Error(`${host} leads to a private address`);
      },
    });
    const error = asRuntimeError(await connection.get('/version').catch((failure: unknown) => failure));
    expect(error).toMatchObject({ message: expect.stringContaining('cluster.example leads to a private address') });
    await expect(connection.socket('/x', new URLSearchParams(), [])).rejects.toThrow('private address');
    expect(asked).toBe(0);
  });
});
