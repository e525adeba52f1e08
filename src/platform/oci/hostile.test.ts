import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { findImage, openRegistry, searchImages } from '#platform/oci/index.ts';
import { selfSigned } from '#test/harness/self-signed.ts';

const organizationId = newId();
const http = createHttpClient({ allowedPrivateAddresses: ['127.0.0.0/8'] });
const CREDENTIALS = { username: 'ada', password: 'secret' };
const BASIC = `Basic ${Buffer.from('ada:secret').toString('base64')}`;
const DIGEST = `sha256:${'0'.repeat(64)}`;

const closing: (() => void)[] = [];
afterEach(() => closing.splice(0).forEach((close) => close()));

type Answer = (request: IncomingMessage, response: ServerResponse, host: string) => void;

/** A server that answers as it is told, and remembers who showed it what. */
async function serve(answer: Answer, tls = false) {
  const seen: [path: string, authorization: string | undefined][] = [];
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    seen.push([request.url!, request.headers.authorization]);
    answer(request, response, host);
  };
  const server = tls ? createTlsServer(selfSigned(), listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  closing.push(() => (server.closeAllConnections(), server.close()));
  return { host, url: `http${tls ? 's' : ''}://${host}`, seen };
}

const basicOnly: Answer = (request, response) =>
  request.headers.authorization === BASIC
    ? void response.writeHead(200, { 'docker-content-digest': DIGEST }).end()
    : void response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();

describe('the credentials of a registry', () => {
  test('do not follow its redirect to another host, which gets none whatever it asks for', async () => {
    const other = await serve((_request, response) =>
      response.writeHead(401, { 'www-authenticate': 'Basic realm="give it to me"' }).end(),
    );
    const { url } = await serve((request, response) =>
      request.headers.authorization
        ? void response.writeHead(307, { location: `http://${other.host}/steal` }).end()
        : void response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end(),
    );
    const client = openRegistry(http, { organizationId, url, credentials: CREDENTIALS });
    await expect(client.resolveDigest('app', '1')).rejects.toMatchObject({ failure: 'unauthorized' });
    expect(other.seen).toEqual([['/steal', undefined]]);
  });

  test('stay with it along redirects within its own host, and come back to it without', async () => {
    const { url, seen } = await serve((request, response, host) =>
      request.url!.startsWith('/v2/')
        ? void response.writeHead(307, { location: `http://${host}/elsewhere` }).end()
        : basicOnly(request, response, host),
    );
    await expect(openRegistry(http, { organizationId, url, credentials: CREDENTIALS }).ping()).rejects.toMatchObject({
      failure: 'unauthorized',
    });
    expect(seen.map(([path]) => path)).toEqual(['/v2/', '/elsewhere']);
  });

  test('go to no token service without TLS where the registry has it', async () => {
    const realm = await serve((_request, response) => void response.end('{"token":"t"}'));
    const challenge = `Bearer realm="http://${realm.host}/token",service="s"`;
    const { url } = await serve(
      (_request, response) => void response.writeHead(401, { 'www-authenticate': challenge }).end(),
      true,
    );
    const client = openRegistry(http, { organizationId, url, credentials: CREDENTIALS, skipTlsVerification: true });
    await expect(client.ping()).rejects.toMatchObject({ failure: 'unauthorized' });
    expect(realm.seen).toEqual([]);
  });

  test('are shown to nobody who does not ask for them', async () => {
    const { url, seen } = await serve((_request, response) => void response.end('{}'));
    await openRegistry(http, { organizationId, url, credentials: CREDENTIALS }).ping();
    expect(seen).toEqual([['/v2/', undefined]]);
  });

  test('are sent to a token service once for each thing that is asked of it', async () => {
    const realm = await serve((_request, response) => void response.end('{"access_token":"t"}'));
    const challenge = `Bearer realm="http://${realm.host}/token?a=b",service="s"`;
    const { url } = await serve((request, response) =>
      request.headers.authorization === 'Bearer t'
        ? void response.end('{"tags":["1"]}')
        : void response.writeHead(401, { 'www-authenticate': challenge }).end(),
    );
    const client = openRegistry(http, { organizationId, url, credentials: CREDENTIALS });
    for (const _ of [1, 2]) expect(await client.tags('team/app')).toEqual(['1']);
    expect(realm.seen).toEqual([['/token?a=b&scope=repository%3Ateam%2Fapp%3Apull&service=s', BASIC]]);
  });
});

describe('a registry', () => {
  test('that leads to an address that may not be called is refused before anything is connected', async () => {
    const { url } = await serve(
      (_request, response) => void response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end(),
    );
    await expect(openRegistry(http, { organizationId, url, credentials: null }).ping()).rejects.toMatchObject({
      failure: 'refused_address',
    });
  });

  test('whose list goes on at another host is not followed', async () => {
    const other = await serve((_request, response) => void response.end('{"tags":["x"]}'));
    const { url } = await serve(
      (_request, response) =>
        void response
          .writeHead(200, { link: `<http://${other.host}/v2/app/tags/list>; rel="next"` })
          .end('{"tags":["1"]}'),
    );
    await expect(openRegistry(http, { organizationId, url, credentials: null }).tags('app')).rejects.toMatchObject({
      failure: 'unexpected',
    });
    expect(other.seen).toEqual([]);
  });

  test('whose list never ends is asked 50 times', async () => {
    const { url, seen } = await serve(
      (request, response) =>
        void response.writeHead(200, { link: `<${request.url}>; rel="next"` }).end('{"tags":["1"]}'),
    );
    expect(await openRegistry(http, { organizationId, url, credentials: null }).tags('app')).toHaveLength(50);
    expect(seen).toHaveLength(50);
  });

  test('that answers another content than its digest says is not believed', async () => {
    const { url } = await serve((_request, response) => void response.end('{"config":{}}'));
    const client = openRegistry(http, { organizationId, url, credentials: null });
    await expect(client.blob('app', DIGEST, 1000)).rejects.toMatchObject({ failure: 'unexpected' });
    await expect(client.manifest('app', DIGEST)).rejects.toMatchObject({ failure: 'unexpected' });
  });

  test('that tells no digest has it reckoned from what it answers', async () => {
    const { url, seen } = await serve((_request, response) => void response.end('{}'));
    expect(await openRegistry(http, { organizationId, url, credentials: null }).resolveDigest('app', '1')).toBe(
      'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
    );
    expect(seen).toHaveLength(2);
  });

  test.each([
    [429, 'limited', true],
    [503, 'unreachable', true],
    [418, 'unexpected', false],
    [403, 'unauthorized', false],
  ])('that answers %i is %s', async (status, failure, passing) => {
    const { url } = await serve((_request, response) => void response.writeHead(status).end());
    await expect(openRegistry(http, { organizationId, url, credentials: null }).tags('app')).rejects.toMatchObject({
      failure,
      passing,
    });
  });

  test.each(['<html>', '[]', 'null', '{"tags":{"a":1}}', '{"tags":[1,null,"../x"]}'])(
    'that answers %s is no registry, or has nothing',
    async (body) => {
      const { url } = await serve((_request, response) => void response.end(body));
      const tags = openRegistry(http, { organizationId, url, credentials: null }).tags('app');
      await tags.then(
        (found) => expect(found).toEqual([]),
        (error: unknown) => expect(error).toMatchObject({ failure: 'unexpected' }),
      );
    },
  );

  test('that answers all of its tags at once is read up to 5000 of them', async () => {
    const tags = Array.from({ length: 150_000 }, (_, n) => `v${n}`);
    const { url } = await serve((_request, response) => void response.end(JSON.stringify({ tags })));
    expect(await openRegistry(http, { organizationId, url, credentials: null }).tags('app')).toEqual(
      tags.slice(0, 5000),
    );
  });

  test.each([
    ['{"config":{"digest":"a"},"Config":{"digest":"b"}}', 'its key "Config" must be written "config"'],
    ['{"config":{"digest":"a"},"config":{"digest":"b"}}', 'its key "config" is repeated'],
    ['<html>', 'it is not JSON: '],
    [`{"layers":[${'{},'.repeat(30_000)}{}]}`, 'it has more than 20000 values.'],
  ])(
    'is refused a manifest that clients read in several ways, or not at all, and the message says why',
    async (body, why) => {
      const { host, url } = await serve((_request, response) => void response.end(body));
      const error = await openRegistry(http, { organizationId, url, credentials: null })
        .manifest('app', '1')
        .catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({
        failure: 'unexpected',
        message: expect.stringContaining(`The answer of ${host}: ${why}`),
      });
    },
  );

  test('whose token service answers a bare token is not let in, and no message shows the token', async () => {
    const realm = await serve((_request, response) => void response.end('secret-token'));
    const challenge = `Bearer realm="http://${realm.host}/token"`;
    const { url } = await serve(
      (_request, response) => void response.writeHead(401, { 'www-authenticate': challenge }).end(),
    );
    const error = await openRegistry(http, { organizationId, url, credentials: CREDENTIALS })
      .ping()
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ failure: 'unauthorized', message: expect.not.stringContaining('secret-token') });
  });

  test('without a catalog is asked for an image of the name that is searched for', async () => {
    const { url } = await serve((request, response) =>
      request.url === '/v2/team/app/tags/list?n=100'
        ? void response.end('{"tags":["1"]}')
        : void response.writeHead(request.url === '/v2/' ? 200 : 404).end('{}'),
    );
    const access = { organizationId, url, credentials: null };
    expect(await searchImages(http, access, 'team/app')).toEqual([{ name: 'team/app', versions: ['1'] }]);
    expect(await searchImages(http, access, 'other')).toEqual([]);
    await expect(searchImages(http, access, '')).rejects.toMatchObject({ failure: 'unsupported' });
  });

  test('that refuses what it does not have, as many do, has no such image', async () => {
    const { url } = await serve(
      (request, response) => void response.writeHead(request.url === '/v2/' ? 200 : 403).end(),
    );
    expect(await findImage(http, { organizationId, url, credentials: null }, 'team/app')).toBeUndefined();
  });
});

test('Docker Hub is searched by its own search, and asked for tags by its own names', async () => {
  const asked: string[] = [];
  const hub = {
    ...http,
    request: async (url: string) => {
      asked.push(url);
      const found = url.includes('/search')
        ? { results: [{ name: 'nginx' }, { name: 'acme/nginx' }] }
        : { tags: ['1'] };
      return { status: 200, headers: {}, body: Buffer.from(JSON.stringify(found)), truncated: false };
    },
  };
  const access = { organizationId, url: 'https://docker.io', credentials: null };
  expect(await searchImages(hub, access, 'nginx')).toEqual([
    { name: 'nginx', versions: ['1'] },
    { name: 'acme/nginx', versions: ['1'] },
  ]);
  expect(asked).toEqual([
    'https://index.docker.io/v1/search?q=nginx&n=25',
    'https://registry-1.docker.io/v2/library/nginx/tags/list?n=100',
    'https://registry-1.docker.io/v2/acme/nginx/tags/list?n=100',
  ]);
});
