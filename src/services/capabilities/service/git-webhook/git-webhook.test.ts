import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { apiRoot } from '#resources/git-token/index.ts';
import { sql } from '#platform/database/index.ts';
import { KINDS } from '#services/mount.ts';
import {
  gitWebhookPath,
  gitWebhookSecretPlace,
  isApiOf,
  removeUnusedWebhooks,
  repositoryKey,
} from '#services/capabilities/service/git-webhook/index.ts';
import { locateRepository } from '#services/sources/git.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { EXAMPLE } from '#test/harness/engine.ts';

const BASE = 'https://quarterdeck.acme.net';
const app = useApp({ QUARTERDECK_BASE_URL: BASE, QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });

/** Webhooks of the pretended provider, in the provider's own form; its token is `good`. */
let hooks: any[] = [];
const paths: string[] = [];
let server: Server;
let origin: string;
let answerWith: number | undefined;

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
    paths.push(`${request.method} ${request.url}`);
    const { authorization, 'private-token': gitlab } = request.headers;
    const answer = (status: number, value: unknown) => response.writeHead(status).end(JSON.stringify(value));
    if (answerWith) return answer(answerWith, {});
    if (authorization !== 'Bearer good' && gitlab !== 'good') return answer(401, {});
    const bitbucket = request.url!.startsWith('/2.0/');
    const id = decodeURIComponent(/\/hooks\/([^/?]+)/.exec(request.url!)?.[1] ?? '');
    if (request.method === 'DELETE') {
      hooks = hooks.filter((hook) => String(hook.id) !== id && hook.uuid !== id);
      return response.writeHead(204).end();
    }
    if (request.method === 'GET') return answer(200, bitbucket ? { values: hooks } : hooks);
    if (request.method === 'POST') hooks.push({ id: hooks.length + 1, uuid: `{${newId()}}`, ...body });
    else
      Object.assign(
        hooks.find((hook) => String(hook.id) === id || hook.uuid === id),
        body,
      );
    return answer(200, {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

let admin: Actor;
beforeEach(async () => {
  admin = await app.organization();
  hooks = [];
  paths.length = 0;
  answerWith = undefined;
});

const makeToken = async (type: string, token = 'good', api = origin) =>
  ok(
    await admin.post(`/organization/${admin.organizationId}/gitToken`, {
      name: 'forge',
      type,
      token,
      git_api_url: api,
    }),
    201,
  ).id as string;

async function makeApplication(git: object) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201);
  const body = { name: 'web', git_repository: { url: `${origin}/acme/shop.git`, ...git } };
  return ok(await admin.post(`/environment/${environment.id}/application`, body), 201).id as string;
}

const statusOf = async (id: string) => ok(await admin.get(`/service/${id}/gitWebhookStatus`), 200);
const sync = (id: string) => admin.post(`/service/${id}/gitWebhook/sync`);

/** Registered; the provider has not called yet. */
const REGISTERED = { status: 'ACTIVE', message: expect.stringContaining('has not called yet') };

describe.each([
  ['GITHUB', '', 'GET /api/v3/repos/acme/shop/hooks?per_page=100'],
  // Gitea and Forgejo.
  ['GITHUB', '/api/v1', 'GET /api/v1/repos/acme/shop/hooks?limit=50'],
  ['GITLAB', '', 'GET /api/v4/projects/acme%2Fshop/hooks?per_page=100'],
  ['BITBUCKET', '', 'GET /2.0/repositories/acme/shop/hooks?pagelen=100'],
])('the webhook of a repository at %s%s', (provider, path, listing) => {
  test('is registered once for all services of the repository, set right again, and its state told', async () => {
    const git = { git_token_id: await makeToken(provider, 'good', `${origin}${path}`), provider };
    const [first, second] = [await makeApplication(git), await makeApplication(git)];
    expect(await statusOf(first)).toMatchObject({ status: 'NOT_CONFIGURED', provider });
    expect(ok(await sync(first), 200)).toEqual({ ...REGISTERED, provider });
    expect(await statusOf(second)).toEqual({ ...REGISTERED, provider });
    expect(ok(await sync(second), 200)).toEqual({ ...REGISTERED, provider });
    expect(paths).toContain(listing);

    const row = await app.db
      .selectFrom('git_webhook')
      .selectAll()
      .where('organization_id', '=', admin.organizationId)
      .executeTakeFirstOrThrow();
    const url = `${BASE}${gitWebhookPath(row.id)}`;
    expect(hooks.map((hook) => hook.config?.url ?? hook.url)).toEqual([url]);
    const { vault } = app.platform;
    const secret = await vault.open(app.db, admin.organizationId, gitWebhookSecretPlace(row.id), row.secret);
    expect(hooks[0].config?.secret ?? hooks[0].secret ?? hooks[0].token).toBe(secret);

    if (provider === 'GITLAB') hooks[0].merge_requests_events = false;
    else hooks[0].events = hooks[0].events.slice(0, 1);
    const broken = await statusOf(first);
    expect(broken).toMatchObject({
      status: 'MISCONFIGURED',
      provider,
      message: expect.stringContaining('not send every event'),
    });
    expect(broken.missing_events.length).toBeGreaterThan(0);
    expect(ok(await sync(first), 200)).toEqual({ ...REGISTERED, provider });
    hooks = [];
    expect((await statusOf(first)).status).toBe('NOT_CONFIGURED');

    const events = await app.db
      .selectFrom('audit_event')
      .selectAll()
      .where('target_id', '=', first)
      .where('sub_target_type', '=', 'GIT_REPOSITORY')
      .execute();
    expect(events.map((event) => event.change.git_webhook.url)).toEqual([url, url]);
    expect(JSON.stringify(events)).not.toContain(secret);
  });
});

test('a webhook is removed at its provider some time after the last service of its repository', async () => {
  const git = { git_token_id: await makeToken('GITHUB'), provider: 'GITHUB' };
  const [first, second] = [await makeApplication(git), await makeApplication(git)];
  ok(await sync(first), 200);
  const look = () => removeUnusedWebhooks(app.platform, KINDS, new AbortController().signal);
  const left = () =>
    app.db.selectFrom('git_webhook').selectAll().where('organization_id', '=', admin.organizationId).execute();
  const wait = () =>
    sql`update git_webhook set unused_since = unused_since - interval '1 hour' where unused_since is not null`.execute(
      app.db,
    );
  await app.db.deleteFrom('service').where('id', '=', first).execute();
  await look();
  expect(await left()).toMatchObject([{ unused_since: null }]);
  await app.db.deleteFrom('service').where('id', '=', second).execute();
  await look();
  expect([hooks.length, (await left()).length]).toEqual([1, 1]);
  await wait();
  answerWith = 500;
  await look();
  expect([hooks.length, (await left()).length]).toEqual([1, 1]);
  answerWith = undefined;
  await look();
  expect([hooks, await left()]).toEqual([[], []]);
});

describe('the status of a git webhook', () => {
  test('says what is missing where it can not be known', async () => {
    const without = await makeApplication({});
    expect(await statusOf(without)).toMatchObject({
      status: 'UNABLE_TO_VERIFY',
      provider: 'GITLAB',
      message: expect.stringContaining('no git token'),
    });
    const elsewhere = await makeApplication({
      git_token_id: await makeToken('GITLAB', 'good', 'https://gitlab.com/api/v4'),
    });
    expect((await statusOf(elsewhere)).message).toContain('token of that server');
    const unregistered = await makeApplication({ git_token_id: await makeToken('GITLAB') });
    expect(await statusOf(unregistered)).toMatchObject({ status: 'NOT_CONFIGURED' });
    expect(paths).toEqual([]);
  });

  test('is UNABLE_TO_VERIFY while the provider gives no answer', async () => {
    const id = await makeApplication({ git_token_id: await makeToken('GITLAB') });
    ok(await sync(id), 200);
    answerWith = 500;
    expect(await statusOf(id)).toMatchObject({ status: 'UNABLE_TO_VERIFY', message: expect.stringContaining('500') });
  });
});

describe('the synchronisation of a git webhook', () => {
  test('is refused with what would make it possible', async () => {
    const without = await sync(await makeApplication({}));
    expect([without.status, without.body.message]).toEqual([400, expect.stringContaining('give it one')]);
    const bad = await sync(await makeApplication({ git_token_id: await makeToken('GITHUB', 'bad-token') }));
    expect([bad.status, bad.body.message]).toEqual([400, expect.stringContaining('may not manage webhooks')]);
    expect(JSON.stringify(bad.body)).not.toContain('bad-token');
    const local = await sync(await makeApplication({ url: EXAMPLE, git_token_id: await makeToken('GITLAB') }));
    expect(local.status).toBe(400);
    answerWith = 502;
    expect((await sync(await makeApplication({ git_token_id: await makeToken('GITLAB') }))).status).toBe(502);
  });

  test('takes who may edit the service', async () => {
    const id = await makeApplication({ git_token_id: await makeToken('GITLAB') });
    expect((await (await app.organization()).get(`/service/${id}/gitWebhookStatus`)).status).toBe(404);
    expect((await (await admin.withScope('DEPLOY')).post(`/service/${id}/gitWebhook/sync`)).status).toBe(403);
    expect((await sync(newId())).status).toBe(404);
  });
});

describe('without an address of the installation', () => {
  const silent = useApp();
  test('no webhook can be registered, and the status says so', async () => {
    admin = await silent.organization();
    const id = await makeApplication({});
    expect(await statusOf(id)).toMatchObject({
      status: 'NOT_CONFIGURED',
      message: expect.stringContaining('QUARTERDECK_BASE_URL'),
    });
    expect((await sync(id)).status).toBe(400);
  });
});

test.each([
  ['GITHUB', 'https://api.github.com', 'https://api.github.com'],
  ['GITHUB', 'https://git.acme.net/', 'https://git.acme.net/api/v3'],
  ['GITHUB', 'https://git.acme.net/api/v3/', 'https://git.acme.net/api/v3'],
  ['GITLAB', 'https://git.acme.net', 'https://git.acme.net/api/v4'],
  ['GITLAB', 'https://acme.net/gitlab/api/v4', 'https://acme.net/gitlab/api/v4'],
  ['BITBUCKET', 'https://api.bitbucket.org/2.0', 'https://api.bitbucket.org/2.0'],
] as const)('the API of %s given as %s is %s', (provider, given, wanted) =>
  expect(apiRoot(provider, given)).toBe(wanted),
);

test.each([
  ['https://Git.Acme.net/Acme/Shop.git', 'git.acme.net/acme/shop'],
  ['https://git.acme.net:443/acme/shop', 'git.acme.net/acme/shop'],
  ['http://git.acme.net:80/acme/shop', 'git.acme.net/acme/shop'],
  ['ssh://git@git.acme.net/acme/shop.git', 'git.acme.net/acme/shop'],
  ['ssh://git@git.acme.net:22/acme/shop.git', 'git.acme.net/acme/shop'],
  ['git@git.acme.net:acme/shop.git', 'git.acme.net/acme/shop'],
  ['https://git.acme.net:3000/acme/shop', 'git.acme.net:3000/acme/shop'],
  ['https://git.acme.net:80/acme/shop', 'git.acme.net:80/acme/shop'],
  ['http://git.acme.net:443/acme/shop', 'git.acme.net:443/acme/shop'],
  ['https://[2001:db8::1]:4000/acme/shop', '[2001:db8::1]:4000/acme/shop'],
  ['ssh://git@Git.Acme.net:2222/acme/shop.git', 'git.acme.net/acme/shop'],
  ['ssh://git@[2001:db8::1]:2222/acme/shop', '[2001:db8::1]/acme/shop'],
])('the repository %s has the key %s', (url, key) => {
  const { owner, name, provider } = locateRepository(url)!;
  expect(repositoryKey({ url, owner, name, provider, branch: 'main', root_path: '/', git_token_id: null })).toBe(key);
});

test.each([
  ['https://api.github.com', 'https://github.com/acme/shop', true],
  ['https://git.acme.net/api/v4', 'https://Git.Acme.net:443/acme/shop', true],
  ['https://git.acme.net/api/v4', 'ssh://git@git.acme.net:2222/acme/shop', true],
  ['https://git.acme.net/api/v4', 'git@git.acme.net:acme/shop.git', true],
  ['https://git.acme.net:3000/api/v1', 'https://git.acme.net:3000/acme/shop', true],
  ['https://git.acme.net:3000/api/v1', 'https://git.acme.net:4000/acme/shop', false],
  ['https://git.acme.net:3000/api/v1', 'https://git.acme.net/acme/shop', false],
  ['https://git.acme.net:3000/api/v1', 'git@git.acme.net:acme/shop.git', false],
  ['https://git.acme.net/api/v1', 'http://git.acme.net/acme/shop', false],
  ['http://git.acme.net/api/v1', 'https://git.acme.net/acme/shop', false],
  ['https://git.acme.net/api/v1', 'https://git.acme.net.evil.net/acme/shop', false],
  ['https://git.acme.net/api/v1', '/srv/git/acme/shop', false],
])('a git token for %s is used for %s: %s', (api, url, isUsed) => {
  expect(isApiOf(api, { url })).toBe(isUsed);
});

test('a webhook is not registered with a token of another port of its host', async () => {
  const git_token_id = await makeToken('GITHUB', 'good', origin.replace(/:\d+$/, ':1'));
  const id = await makeApplication({ git_token_id });
  const { status, body } = await sync(id);
  expect([status, body.message]).toEqual([
    400,
    expect.stringMatching(/is for http:\/\/127\.0\.0\.1:1, .* of that server/),
  ]);
  expect(paths).toEqual([]);
});
