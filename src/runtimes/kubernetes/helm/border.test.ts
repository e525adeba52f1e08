import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createServer } from '#kernel/node-http.ts';
import { newIdentity } from '#runtimes/contract/fixture.ts';
import { LONGEST_BLOCK_MS, leastBlockedBy } from '#test/harness/blocking.ts';
import { RECORD_KEY } from '../api-server.fixture.ts';
import { Connection } from '../connection.ts';
import { namespaceOf } from '../labels.ts';
import { recordName } from '../record/index.ts';
import { sealOf } from '../record/seal.ts';
import { Border, type BorderOptions } from './border.ts';

const identity = newIdentity('here', 5);
const RELEASE = 'helm-z1';
const own = `/api/v1/namespaces/${namespaceOf(identity)}`;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Opens a border before an API server that answers like this. `seen` are the requests that reach it. */
async function openBorder(answer: Answer, options: Partial<BorderOptions> = {}) {
  const seen: { line: string; headers: IncomingMessage['headers'] }[] = [];
  const server = createServer((request, response) => {
    seen.push({ line: `${request.method} ${request.url}`, headers: request.headers });
    answer(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const access = {
    server: `http://cluster.example:${(server.address() as AddressInfo).port}/prefix`,
    serverName: null,
    authorities: null,
    insecure: false,
    certificate: null,
    token: 'of the cluster',
  };
  const connection = new Connection({ access, policy: async () => ['127.0.0.1'], callMs: 2_000 });
  const context = { signal: new AbortController().signal };
  const border = await Border.open(
    { connection, installation: 'here', recordKey: RECORD_KEY },
    { identity, release: RELEASE, allowClusterWide: false, context, ...options },
  );
  closing.push(
    () => server.closeAllConnections(),
    () => server.close(),
    () => connection.close(),
    () => border.close(),
  );
  return { border, seen };
}

const json = (response: ServerResponse, body: object, status = 200) => {
  response.writeHead(status, { 'content-type': 'application/json', 'set-cookie': 'a=b' });
  response.end(JSON.stringify(body));
};

/** Sends bytes as they are; answers all that comes back. */
async function sendRaw(url: string, text: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.end(text);
  let answer = '';
  for await (const part of socket) answer += String(part);
  return answer;
}

describe('the border', () => {
  test('passes on what is the chart, with the cluster credentials and without those of the caller', async () => {
    const { border, seen } = await openBorder((_request, response) => json(response, { items: [] }));
    const headers = {
      authorization: 'Bearer mine',
      'impersonate-user': 'admin',
      cookie: 'a=b',
      accept: 'application/json',
    };
    const answer = await fetch(`${border.url}${own}/configmaps?limit=1&labelSelector=a%3Db`, { headers });
    expect([answer.status, await answer.json(), answer.headers.get('set-cookie')]).toEqual([200, { items: [] }, null]);
    expect(seen).toMatchObject([{ line: `GET /prefix${own}/configmaps?limit=1&labelSelector=a%3Db` }]);
    expect(seen[0]!.headers).toMatchObject({ authorization: 'Bearer of the cluster' });
    expect(seen[0]!.headers).not.toHaveProperty('impersonate-user');
    expect(seen[0]!.headers).not.toHaveProperty('cookie');
  });

  test('is closed to callers without its token, to other namespaces and to upgrades, and says why', async () => {
    const { border, seen } = await openBorder((_request, response) => json(response, {}));
    const { origin } = new URL(border.url);
    for (const path of ['/version', `/${'0'.repeat(48)}/version`, ''])
      expect((await fetch(`${origin}${path}`)).status).toBe(401);
    const refused = await fetch(`${border.url}/api/v1/namespaces/default/secrets`);
    expect([refused.status, await refused.json()]).toMatchObject([
      403,
      { kind: 'Status', reason: 'Forbidden', message: expect.stringContaining('allow_cluster_wide_resources') },
    ]);
    expect([...border.refusals]).toEqual([expect.stringContaining('is in the namespace default')]);
    const path = new URL(border.url).pathname;
    const upgrade = `GET ${path}${own}/pods/web/exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    expect(await sendRaw(border.url, upgrade)).toBe('');
    const dots = `GET ${path}${own}/../default/secrets HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
    expect(await sendRaw(border.url, dots)).toMatch(/^HTTP\/1\.1 403/);
    const absolute = `GET http://other.example/api HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
    expect(await sendRaw(border.url, absolute)).toMatch(/^HTTP\/1\.1 401/);
    expect(seen).toEqual([]);
  });

  test('carries a watch line by line, and ends it with its caller', async () => {
    const ended = Promise.withResolvers<void>();
    const { border } = await openBorder((_request, response) => {
      response.write('{"type":"ADDED"}\n');
      response.on('close', () => ended.resolve());
    });
    const caller = new AbortController();
    const answer = await fetch(`${border.url}${own}/pods?watch=true`, { signal: caller.signal });
    const { value } = await answer.body!.getReader().read();
    expect(Buffer.from(value!).toString()).toBe('{"type":"ADDED"}\n');
    caller.abort();
    await ended.promise;
  });

  test('lets no chart change objects of other services, and nothing once another attempt goes on', async () => {
    const labels = { 'quarterdeck.installation': 'here' };
    const objects: Answer = ({ url }, response) =>
      json(response, { metadata: { labels: url?.endsWith('/other') ? labels : {} } });
    const { border, seen } = await openBorder(objects);
    const change = (name: string) => fetch(`${border.url}${own}/configmaps/${name}`, { method: 'DELETE' });
    expect([(await change('own')).status, (await change('other')).status]).toEqual([200, 403]);
    expect(seen.map(({ line }) => line.replace(`/prefix${own}`, ''))).toEqual([
      'GET /configmaps/own',
      'DELETE /configmaps/own',
      'GET /configmaps/other',
    ]);
    const replaced = { signal: new AbortController().signal, attempt: { number: 1, holds: () => false } };
    const { border: old, seen: none } = await openBorder(objects, { context: replaced });
    expect((await fetch(`${old.url}${own}/configmaps`, { method: 'POST', body: '{}' })).status).toBe(403);
    expect(none).toEqual([]);
  });

  test('stops a revision of helm where a later deployment was taken over, and where the record was altered', async () => {
    const name = recordName(identity.serviceId);
    const text = JSON.stringify({ generation: identity.generation + 1, hostname: 'helm-z1', serving: null, candidate: null }); // prettier-ignore
    const namespace = namespaceOf(identity);
    const genuine = { record: text, seal: sealOf(RECORD_KEY, { namespace, name, text }) };
    const forged = { ...genuine, seal: sealOf(Buffer.alloc(32), { namespace, name, text }) };
    for (const [data, reason] of [
      [genuine, 'A later deployment'],
      [forged, 'was changed by somebody else'],
    ] as const) {
      const { border } = await openBorder((_request, response) =>
        json(response, { metadata: { name, resourceVersion: '1' }, data }),
      );
      const answer = await fetch(`${border.url}${own}/secrets`, { method: 'POST', body: '{}' });
      expect(await answer.json()).toMatchObject({ message: expect.stringContaining(reason) });
    }
  });

  test('takes no object of more than 4 MiB, and remembers hooks', async () => {
    const { border } = await openBorder((request, response) => {
      request.resume();
      request.on('end', () => json(response, {}, 201));
    });
    const post = (body: string) => fetch(`${border.url}${own}/configmaps`, { method: 'POST', body });
    expect((await post('a'.repeat(4 * 2 ** 20 + 1))).status).toBe(413);
    await post(JSON.stringify({ metadata: { name: 'hook', annotations: { 'helm.sh/hook': 'pre-install' } } }));
    await post(JSON.stringify({ metadata: { name: 'plain' } }));
    for (const body of [JSON.stringify({ metadata: { name: `quarterdeck-${identity.serviceId}` } }), 'metadata: {}'])
      expect((await post(body)).status).toBe(403);
    expect(border.hooks).toEqual([{ collection: `${own}/configmaps`, name: 'hook' }]);
  });

  test('lets a chart make nothing that passes for another service, and reads what it writes', async () => {
    const { border, seen } = await openBorder((_request, response) => json(response, { metadata: {} }, 201));
    const write = async (object: unknown, method = 'POST') => {
      const body = typeof object === 'string' ? object : JSON.stringify(object);
      const url = `${border.url}${own}/configmaps${method === 'POST' ? '' : '/web'}`;
      const options = { method, body };
      const answer = await fetch(url, options);
      return [answer.status, ((await answer.json()) as { message?: string }).message];
    };
    const metadata = { name: 'web', labels: { 'quarterdeck.service': 'other' } };
    const refused = [403, 'The label quarterdeck.service of configmaps is not for charts: leave it out.'];
    expect(await write({ metadata })).toEqual(refused);
    expect(await write({ metadata: { name: 'web' }, spec: { template: { metadata } } })).toEqual(refused);
    expect(await write({ spec: { list: [{ labels: { 'quarterdeck.service': null } }] } }, 'PATCH')).toEqual(refused);
    const managed = { labels: { 'app.kubernetes.io/managed-by': 'quarterdeck' } };
    expect((await write({ metadata: { name: 'web', ...managed } }))[0]).toBe(403);
    const noObject = [403, 'What is written of configmaps must be an object in JSON.'];
    expect(await write('metadata: {}', 'PUT')).toEqual(noObject);
    expect(await write([{ op: 'add', path: '/metadata/labels/quarterdeck.service', value: 'a' }], 'PATCH')).toEqual(
      noObject,
    );
    expect(await write('['.repeat(100_000), 'PATCH')).toEqual(noObject);
    expect(seen.every(({ line }) => line.startsWith('GET '))).toBe(true);
    const plain = { metadata: { name: 'web', labels: { 'app.kubernetes.io/managed-by': 'Helm' } } };
    expect(await write(plain)).toEqual([201, undefined]);
  });

  test('reads an object of 4 MiB and holds nothing else up meanwhile', async () => {
    const { border, seen } = await openBorder((_request, response) => json(response, { metadata: {} }, 201));
    const body = `{"metadata":{"name":"web","labels":{"quarterdeck.service":"other"}},"items":[${'{},'.repeat(1_300_000)}{}]}`;
    const write = async () => {
      const answer = await fetch(`${border.url}${own}/configmaps`, { method: 'POST', body });
      expect([answer.status, await answer.json()]).toMatchObject([
        403,
        { message: expect.stringContaining('The label quarterdeck.service') },
      ]);
    };
    expect(await leastBlockedBy(write)).toBeLessThan(LONGEST_BLOCK_MS);
    expect(seen).toEqual([]);
  }, 60_000);

  /** Object of Kubernetes' binary encoding whose metadata has only a name, or several of which readers take the last. */
  function inProtobuf(...names: string[]): Buffer<ArrayBuffer> {
    const field = (number: number, content: Buffer) =>
      Buffer.concat([Buffer.from([number * 8 + 2, content.length]), content]);
    return Buffer.concat([
      Buffer.from('k8s\0'),
      field(1, Buffer.from('type')),
      field(2, field(1, Buffer.concat(names.map((name) => field(1, Buffer.from(name)))))),
    ]);
  }

  test('lets helm write its own revisions in its encoding, and nothing else in it', async () => {
    // The service has no record.
    const { border, seen } = await openBorder(({ url }, response) =>
      json(response, { metadata: {} }, url?.includes('/configmaps/') ? 404 : 200),
    );
    const send = async (method: string, path: string, body: Buffer<ArrayBuffer> | string, type = 'application/vnd.kubernetes.protobuf') =>
      (await fetch(`${border.url}${own}/${path}`, { method, body, headers: { 'content-type': type } })).status; // prettier-ignore
    const revision = `sh.helm.release.v1.${RELEASE}.v3`;
    expect(await send('POST', 'secrets', inProtobuf(revision))).toBe(200);
    expect(await send('PUT', `secrets/${revision}`, inProtobuf(revision))).toBe(200);
    expect(await send('POST', 'secrets', JSON.stringify({ metadata: { name: revision } }), 'application/json')).toBe(
      200,
    );
    const { length } = seen;
    const other = 'sh.helm.release.v1.other.v3';
    expect(await send('POST', 'secrets', inProtobuf('token'))).toBe(403);
    expect(await send('POST', 'secrets', inProtobuf(revision, 'token'))).toBe(403);
    const twice = Buffer.concat([inProtobuf(revision), inProtobuf('token').subarray(4)]);
    expect(await send('POST', 'secrets', twice)).toBe(403);
    expect(await send('POST', 'secrets', inProtobuf(other))).toBe(403);
    expect(await send('PUT', `secrets/${revision}`, inProtobuf(other))).toBe(403);
    expect(await send('PUT', `secrets/${other}`, inProtobuf(revision))).toBe(403);
    expect(await send('POST', 'secrets', inProtobuf(revision), 'text/plain')).toBe(403);
    expect(await send('POST', 'secrets', Buffer.from('k8s\0\xff\xff\xff'))).toBe(403);
    expect(await send('POST', 'configmaps', inProtobuf(revision))).toBe(403);
    expect(await send('DELETE', `secrets/${other}`, '')).toBe(403);
    for (const object of [
      { metadata: { name: other } },
      { metadata: { name: 'token', labels: { owner: 'helm', name: 'other' } } },
      { metadata: { name: 'token' }, type: 'helm.sh/release.v1' },
    ])
      expect(await send('POST', 'secrets', JSON.stringify(object), 'application/json')).toBe(403);
    const changes = seen.slice(length).filter(({ line }) => !line.startsWith('GET '));
    expect(changes).toEqual([]);
  });

  test('refuses an object that gives rights beyond the environment, unless the chart may have objects of the whole cluster', async () => {
    const rights = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespaceOf(identity)}`;
    const role = { rules: [{ apiGroups: [''], resources: ['namespaces'], verbs: ['patch'] }] };
    const write = async (border: Border) => {
      const answer = await fetch(`${border.url}${rights}/roles`, { method: 'POST', body: JSON.stringify(role) });
      return [answer.status, ((await answer.json()) as { message?: string }).message];
    };
    const answer: Answer = (_request, response) => json(response, {}, 201);
    const { border, seen } = await openBorder(answer);
    expect(await write(border)).toEqual([403, expect.stringContaining('set allow_cluster_wide_resources')]);
    expect(seen).toEqual([]);
    const { border: trusted } = await openBorder(answer, { allowClusterWide: true });
    expect(await write(trusted)).toEqual([201, undefined]);
  });

  test('lets a comparison change nothing', async () => {
    const { border, seen } = await openBorder((_request, response) => json(response, {}), { readsOnly: true });
    expect((await fetch(`${border.url}${own}/secrets`, { method: 'POST', body: '{}' })).status).toBe(403);
    expect(seen).toEqual([]);
  });
});
