import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { createServer } from '#kernel/node-http.ts';
import { RECORD_KEY } from './api-server.fixture.ts';
import { Connection } from './connection.ts';
import { Reporter } from './report.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Reports of a cluster whose account has the rights for which `allows` is true; tells the paths that are asked for. */
async function reporterOf(allows: (verb: string, resource: string) => boolean) {
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    asked.push(request.url!);
    if (request.url === '/version')
      return void response.end(JSON.stringify({ gitVersion: 'v1.34.1', major: '1', minor: '34' }));
    if (request.url === '/apis') return void response.end(JSON.stringify({ groups: [] }));
    if (request.method === 'GET')
      return void response.end(JSON.stringify({ metadata: {}, items: [{ metadata: { name: 'one' } }] }));
    const { spec } = JSON.parse(await text(request)) as {
      spec: { resourceAttributes: { verb: string; resource: string } };
    };
    const { verb, resource } = spec.resourceAttributes;
    response.end(JSON.stringify({ status: { allowed: allows(verb, resource) } }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const access = { server: `http://127.0.0.1:${port}`, serverName: null, authorities: null, insecure: false, certificate: null, token: 't' }; // prettier-ignore
  const connection = new Connection({ access, policy: async () => ['127.0.0.1'] });
  closing.push(() => {
    server.closeAllConnections();
    server.close();
    return connection.close();
  });
  return { reporter: new Reporter({ connection, installation: 'test', recordKey: RECORD_KEY }), asked };
}

test('an account that may not watch can be used, and the report says what is late and what would help', async () => {
  const { reporter } = await reporterOf((verb) => verb !== 'watch');
  expect(await reporter.check(false)).toMatchObject({
    ok: true,
    description: 'Kubernetes v1.34.1, 1 node',
    limits: expect.arrayContaining([
      expect.stringMatching(/lacks rights: watch deployments\.apps .*watch pods .*30 s late.*quarterdeck cluster rbac/),
    ]),
  });
});

test('an account that may not change Deployments cannot be used, and the report names the right', async () => {
  const { reporter } = await reporterOf((verb, resource) => !(verb === 'patch' && resource === 'deployments'));
  const { ok, description } = await reporter.check(false);
  expect([ok, description]).toEqual([false, expect.stringContaining('patch deployments.apps (each service has one)')]);
});

test('a quick check repeats what was found with one request, until the credentials are replaced', async () => {
  const { reporter, asked } = await reporterOf(() => true);
  const first = await reporter.check(true);
  const whole = asked.length;
  expect(whole).toBeGreaterThan(20);
  expect(await reporter.check(true)).toEqual(first);
  expect(asked.length).toBe(whole + 1);
  reporter.forget();
  expect(await reporter.check(true)).toEqual(first);
  expect(asked.length).toBe(2 * whole + 1);
});
