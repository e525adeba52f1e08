import { createHmac } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { FORMS } from '#services/moved-tags/notification.fixture.ts';
import { ok, useApp, type Actor, type Answer } from '#test/harness/app.ts';

const app = useApp({ QUARTERDECK_BASE_URL: 'https://quarterdeck.acme.net' });

interface Webhook {
  registry: string;
  path: string;
  secret: string;
  /** Path with the secret. */
  secretPath: string;
}

let admin: Actor;
let environment: string;
beforeAll(async () => {
  admin = await app.organization();
  environment = await environmentOf(admin);
});

async function environmentOf(of: Actor): Promise<string> {
  const project = ok(await of.post(`/organization/${of.organizationId}/project`, { name: newId() }), 201);
  return ok(await of.post(`/project/${project.id}/environment`, { name: 'dev' }), 201).id;
}

const pathOf = ({ organizationId }: Actor, registry: string) =>
  `/organization/${organizationId}/containerRegistry/${registry}/webhook`;

async function webhookOf(of = admin, url = 'https://registry.acme.net'): Promise<Webhook> {
  const body = { name: 'ours', kind: 'GENERIC_CR', url, config: {} };
  const { id } = ok(await of.post(`/organization/${of.organizationId}/containerRegistry`, body), 201);
  return { registry: id, ...(await replaced(of, id)) };
}

async function replaced(of: Actor, registry: string) {
  const made = ok(await of.post(pathOf(of, registry)), 201);
  const { pathname, search } = new URL(made.url_with_secret);
  return { path: pathname, secret: made.secret as string, secretPath: `${pathname}${search}` };
}

/** Makes a container that follows a tag of the registry. */
const follow = async ({ registry }: Webhook, image_name: string, tag: string, [of, at] = [admin, environment]) =>
  ok(
    await of.post(`/environment/${at}/container`, {
      name: newId(),
      registry_id: registry,
      image_name,
      tag,
      auto_deploy: true,
    }),
    201,
  ).id as string;

/** Tags of a registry that wait for a look because of a call. */
const called = async ({ registry }: Webhook): Promise<string[]> => {
  const rows = await app.db
    .selectFrom('image_tag')
    .select(['image_name', 'tag', 'next_at'])
    .where('registry_id', '=', registry)
    .where('call_id', 'is not', null)
    .orderBy('tag')
    .execute();
  for (const { next_at } of rows) expect(next_at.getTime()).toBeLessThan(Date.now() + 60_000);
  return rows.map((row) => `${row.image_name}:${row.tag}`);
};

const call = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  app.anonymous('POST', path, body, { 'content-type': 'application/json', ...headers });

const pushOf = (repository: string, tag: string) => ({ events: [{ action: 'push', target: { repository, tag } }] });

describe('the notification of', () => {
  test.each(FORMS)(
    '$registry asks for the pushed tag, and for no other',
    async ({ url, image, body, headers, sign }) => {
      const webhook = await webhookOf(admin, url);
      const name = image ?? 'acme/shop';
      await follow(webhook, name, 'stable');
      await follow(webhook, name, 'next');
      await follow(webhook, `${name}-worker`, 'stable');
      const text = JSON.stringify(body);
      const proof = sign ? sign(text, webhook.secret) : {};
      const { status, body: answer } = await call(sign ? webhook.path : webhook.secretPath, text, {
        ...headers,
        ...proof,
      });
      expect([status, answer]).toEqual([202, { tags: 1 }]);
      expect(await called(webhook)).toEqual([`${name}:stable`]);
    },
  );
});

test('a package of GitHub without a tag asks for each tag of its image', async () => {
  const webhook = await webhookOf(admin, 'https://ghcr.io');
  await follow(webhook, 'acme/shop', 'stable');
  await follow(webhook, 'acme/shop', 'next');
  await follow(webhook, 'acme/other', 'next');
  const tag = { name: '', digest: 'sha256:1' };
  const body = JSON.stringify({
    action: 'published',
    registry_package: {
      name: 'shop',
      namespace: 'ACME',
      package_type: 'CONTAINER',
      package_version: { container_metadata: { tag } },
    },
  });
  expect((await call(webhook.secretPath, body)).body).toEqual({ tags: 2 });
  expect(await called(webhook)).toEqual(['acme/shop:next', 'acme/shop:stable']);
});

test('events that move no tag ask for nothing', async () => {
  const webhook = await webhookOf();
  await follow(webhook, 'acme/shop', 'stable');
  const bodies = [
    { events: [] },
    { events: [{ action: 'pull', target: { repository: 'acme/shop', tag: 'stable' } }] },
    { events: [{ action: 'push', target: { repository: 'acme/shop', digest: 'sha256:1' } }] },
    { action: 'delete', target: { repository: 'acme/shop', tag: 'stable' } },
    {
      type: 'DELETE_ARTIFACT',
      event_data: { resources: [{ tag: 'stable' }], repository: { repo_full_name: 'acme/shop' } },
    },
    { action: 'published', package: { name: 'shop', namespace: 'acme', package_type: 'npm' } },
    { action: 'created', package: { name: 'shop', owner: { login: 'acme' }, type: 'container', version: 'sha256:1' } },
    { zen: 'Design for failure.', hook_id: 1 },
    pushOf('acme/other', 'stable'),
    pushOf('acme/shop', '../stable'),
  ];
  for (const body of bodies) expect([body, (await call(webhook.secretPath, body)).body]).toEqual([body, { tags: 0 }]);
  expect(await called(webhook)).toEqual([]);
});

describe('a call without the right secret', () => {
  test('is answered as if there were no webhook, and asks for nothing', async () => {
    const webhook = await webhookOf();
    await follow(webhook, 'acme/shop', 'stable');
    const text = JSON.stringify(pushOf('acme/shop', 'stable'));
    const hmac = (key: string) => `sha256=${createHmac('sha256', key).update(text).digest('hex')}`;
    const unknown = await call(`/registryWebhook/${newId()}?token=${webhook.secret}`, text);
    expect(unknown.status).toBe(404);
    const wrong: [string, Record<string, string>?][] = [
      [webhook.path],
      [`${webhook.path}?token=`],
      [`${webhook.path}?token=${webhook.secret}x`],
      [webhook.path, { authorization: 'Bearer another' }],
      [webhook.path, { authorization: `Bearer ${webhook.secret} ` + 'x' }],
      [webhook.path, { authorization: `Basic ${Buffer.from(`${webhook.secret}:`).toString('base64')}` }],
      [webhook.path, { 'x-hub-signature-256': hmac('another') }],
      [webhook.path, { 'x-gitea-signature': hmac('another').slice(7) }],
      // The right secret makes up for no wrong signature or header.
      [webhook.secretPath, { 'x-hub-signature-256': hmac('another') }],
      [webhook.secretPath, { authorization: 'Bearer another' }],
    ];
    for (const [path, headers] of wrong) {
      const { status, body } = await call(path, text, headers);
      expect([path, headers, status, body.message]).toEqual([path, headers, 404, unknown.body.message]);
    }
    expect((await call('/registryWebhook/none', text)).status).toBe(404);
    // Another body than the signed one.
    expect((await call(webhook.path, `${text} `, { 'x-hub-signature-256': hmac(webhook.secret) })).status).toBe(404);
    expect(await called(webhook)).toEqual([]);
    expect(ok(await admin.get(pathOf(admin, webhook.registry)), 200).called_at).toBeNull();
  });

  test('is refused after many, before its body is read, and hinders no other webhook', async () => {
    const [webhook, other] = [await webhookOf(), await webhookOf()];
    const body = pushOf('acme/shop', 'stable');
    const statuses = [];
    for (let n = 0; n < 61; n++) statuses.push((await call(`${webhook.path}?token=guess${n}`, body)).status);
    expect(statuses.filter((status) => status === 404)).toHaveLength(60);
    expect(await call(webhook.secretPath, 'no JSON')).toMatchObject({ status: 429, headers: { 'retry-after': '60' } });
    expect((await call(other.secretPath, body)).status).toBe(202);
  });
});

test.each(['Bearer', 'bearer', 'Basic', ''])('the secret is taken from Authorization: %s', async (scheme) => {
  const webhook = await webhookOf();
  const value = scheme === 'Basic' ? Buffer.from(`any:${webhook.secret}`).toString('base64') : webhook.secret;
  const answer = await call(webhook.path, pushOf('a', 'b'), { authorization: `${scheme} ${value}`.trim() });
  expect(answer.status).toBe(202);
});

test('what makes no sense is refused, and says which notifications are known', async () => {
  const webhook = await webhookOf();
  await follow(webhook, 'acme/shop', 'stable');
  const refusals: [string, RegExp][] = [
    ['{', /notification: it is not JSON/],
    ['null', /notification of no registry that is known: send JSON of the Distribution registry, Docker Hub/],
    ['[]', /no registry that is known/],
    ['"push"', /no registry that is known/],
    ['{"ref":"refs/heads/main"}', /no registry that is known/],
    ['{"events":"all","target":7,"push_data":[]}', /no registry that is known/],
    ['{"__proto__":{"events":[]}}', /not JSON/],
    [`[${'['.repeat(20_000)}${']'.repeat(20_000)}]`, /notification/],
    [JSON.stringify({ message: { data: 'AAAA' } }), /message.data: it is not JSON/],
  ];
  for (const [body, message] of refusals) {
    const { status, body: answer } = await call(webhook.secretPath, body);
    expect([body.slice(0, 80), status, answer.message]).toEqual([
      body.slice(0, 80),
      400,
      expect.stringMatching(message),
    ]);
  }
  const large = JSON.stringify(pushOf('x'.repeat(1 << 20), 'stable'));
  expect((await call(webhook.secretPath, large)).status).toBe(413);
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  expect(await call(webhook.secretPath, 'payload=%7B%7D', form)).toMatchObject({
    status: 415,
    body: { message: expect.stringContaining('application/json') },
  });
  // Only so many events of one call are read.
  const events = Array.from({ length: 101 }, (_, n) => ({
    action: 'push',
    target: { repository: 'acme/shop', tag: n < 100 ? `v${n}` : 'stable' },
  }));
  expect((await call(webhook.secretPath, { events })).body).toEqual({ tags: 0 });
  expect(await called(webhook)).toEqual([]);
});

test('a repeated call asks for one more look at most, and not before a while after the last one', async () => {
  const webhook = await webhookOf();
  await follow(webhook, 'acme/shop', 'stable');
  await follow(webhook, 'acme/shop', 'stable');
  const body = pushOf('acme/shop', 'stable');
  for (let n = 0; n < 3; n++) expect((await call(webhook.secretPath, body)).body).toEqual({ tags: 1 });
  const tags = app.db.selectFrom('image_tag').selectAll().where('registry_id', '=', webhook.registry);
  expect(await tags.execute()).toHaveLength(1);
  const looked_at = new Date();
  const next_at = new Date(Date.now() + 3_600_000);
  await app.db
    .updateTable('image_tag')
    .set({ looked_at, next_at })
    .where('registry_id', '=', webhook.registry)
    .execute();
  for (let n = 0; n < 3; n++) await call(webhook.secretPath, body);
  expect((await tags.execute()).map((row) => row.next_at.getTime() - looked_at.getTime())).toEqual([10_000]);
});

test('right calls are limited as well', async () => {
  const webhook = await webhookOf();
  const body = { events: [] };
  const statuses = [];
  for (let n = 0; n < 601; n++) statuses.push((await call(webhook.secretPath, body)).status);
  expect(statuses.filter((status) => status === 202)).toHaveLength(600);
  expect(statuses.at(-1)).toBe(429);
});

test('a call asks for tags of its own registry and organization only', async () => {
  const webhook = await webhookOf();
  const beside = await webhookOf();
  const stranger = await app.organization();
  const foreign = await webhookOf(stranger);
  for (const [one, at] of [
    [webhook, [admin, environment]],
    [beside, [admin, environment]],
    [foreign, [stranger, await environmentOf(stranger)]],
  ] as const)
    await follow(one, 'acme/shop', 'stable', [...at]);
  expect((await call(webhook.secretPath, pushOf('acme/shop', 'stable'))).body).toEqual({ tags: 1 });
  expect([await called(webhook), await called(beside), await called(foreign)]).toEqual([['acme/shop:stable'], [], []]);
  // The secret of one webhook opens no other.
  expect((await call(`${foreign.path}?token=${webhook.secret}`, pushOf('acme/shop', 'stable'))).status).toBe(404);
});

describe('the webhook of a registry', () => {
  test('shows its secret once, and ends when it is replaced or deleted', async () => {
    const webhook = await webhookOf();
    const at = pathOf(admin, webhook.registry);
    const body = pushOf('acme/shop', 'stable');
    expect((await call(webhook.secretPath, body)).status).toBe(202);
    const shown = await admin.get(at);
    expect(ok(shown, 200)).toEqual({
      id: webhook.path.split('/')[2],
      url: `https://quarterdeck.acme.net${webhook.path}`,
      created_at: expect.any(String),
      called_at: expect.any(String),
    });
    const events = await admin.get(`/organization/${admin.organizationId}/events?pageSize=100`);
    const registries = await admin.get(`/organization/${admin.organizationId}/containerRegistry`);
    for (const { body: answer } of [shown, events, registries])
      expect(JSON.stringify(answer)).not.toContain(webhook.secret);
    const next = await replaced(admin, webhook.registry);
    expect((await call(webhook.secretPath, body)).status).toBe(404);
    expect((await call(next.secretPath, body)).status).toBe(202);
    ok(await admin.delete(at), 204);
    expect((await call(next.secretPath, body)).status).toBe(404);
    expect([(await admin.get(at)).status, (await admin.delete(at)).status]).toEqual([404, 404]);
  });

  test('is made by who may edit registries, and is nothing to other organizations', async () => {
    const { registry } = await webhookOf();
    const at = pathOf(admin, registry);
    const reader = await admin.withScope('READ');
    expect([(await reader.get(at)).status, (await reader.post(at)).status, (await reader.delete(at)).status]).toEqual([
      200, 403, 403,
    ]);
    const stranger = await app.organization();
    expect((await stranger.post(at)).status).toBe(404);
    expect((await stranger.post(pathOf(stranger, registry))).status).toBe(404);
  });

  test('ends with its registry', async () => {
    const webhook = await webhookOf();
    ok(await admin.delete(pathOf(admin, webhook.registry).replace(/\/webhook$/, '')), 204);
    expect((await call(webhook.secretPath, pushOf('acme/shop', 'stable'))).status).toBe(404);
  });
});
