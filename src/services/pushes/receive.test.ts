import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { useApp } from '#test/harness/app.ts';
import { bodyOfPush, commit, headersOf, usePushes, ZERO } from '#services/pushes/pushes.fixture.ts';
import type { Sender } from '#services/pushes/signature.ts';

const app = useApp();
const { environmentOf, applicationIn, webhookOf, call, worker, applied, requested } = usePushes(app);

const [a, b] = [commit('a'), commit('b')];

/** Body of a push as each provider sends it. */
const BODIES: Record<Sender, () => string> = {
  GITHUB: () => bodyOfPush({ before: a, after: b }),
  GITEA: () => bodyOfPush({ before: a, after: b }),
  GITLAB: () =>
    JSON.stringify({
      object_kind: 'push',
      ref: 'refs/heads/main',
      before: a,
      after: b,
      user_name: 'Ada',
      project: { default_branch: 'main' },
      commits: [{ id: b, message: 'a change', author: { name: 'Ada' }, added: ['x'], modified: [], removed: [] }],
      total_commits_count: 1,
      unique: newId(),
    }),
  BITBUCKET: () =>
    JSON.stringify({
      actor: { display_name: 'ada' },
      push: {
        changes: [
          {
            new: { type: 'branch', name: 'main', target: { hash: b, message: 'x', author: { raw: 'Ada <a@b.c>' } } },
            old: { type: 'branch', name: 'main', target: { hash: a } },
          },
        ],
      },
      unique: newId(),
    }),
};

describe.each(['GITHUB', 'GITEA', 'GITLAB', 'BITBUCKET'] as const)('a push of %s', (sender) => {
  test('is taken once with the right signature, and only then', async () => {
    const admin = await app.organization();
    const environment = await environmentOf(admin);
    const web = await applicationIn(admin, environment);
    const hook = await webhookOf(admin);
    const body = BODIES[sender]();
    const id = newId();
    const right = headersOf(sender, body, { id });
    const unknown = await call(`/gitWebhook/${newId()}`, body, right);
    for (const headers of [
      {},
      headersOf(sender, body, { secret: 'another' }),
      headersOf(sender, `${body} `, sender === 'GITLAB' ? { secret: '' } : {}),
      Object.fromEntries(Object.entries(right).filter(([name]) => !/signature|token/.test(name))),
    ]) {
      const refused = await call(hook, body, headers);
      expect([refused.status, refused.body.message]).toEqual([404, unknown.body.message]);
    }
    expect(await call(hook, body, right)).toMatchObject({ status: 202, body: { is_new: true } });
    expect(await call(hook, body, right)).toMatchObject({ status: 202, body: { is_new: false } });
    // Ids of calls are not signed: another one makes an old body no new push.
    expect(await call(hook, body, headersOf(sender, body))).toMatchObject({ status: 202, body: { is_new: false } });
    worker();
    expect(await applied(admin)).toMatchObject([{ branch: 'main', before_commit: a, after_commit: b, body: null }]);
    expect(await requested(environment)).toEqual([{ [web]: b }]);
    const [deployment] = await app.db
      .selectFrom('deployment')
      .select('requested_by_name')
      .where('environment_id', '=', environment)
      .execute();
    expect(deployment!.requested_by_name).toBe('Ada');
  });
});

test('other events than pushes store nothing, and show that the provider reaches the service', async () => {
  const admin = await app.organization();
  const hook = await webhookOf(admin);
  const body = JSON.stringify({ zen: 'Keep it logically awesome.' });
  expect(await call(hook, body, headersOf('GITHUB', body, { event: 'ping' }))).toMatchObject({
    status: 202,
    body: { is_new: false },
  });
  const row = await app.db
    .selectFrom('git_webhook')
    .selectAll()
    .where('organization_id', '=', admin.organizationId)
    .executeTakeFirstOrThrow();
  expect(row.heard_at).toBeInstanceOf(Date);
  expect(await applied(admin)).toEqual([]);
});

test('signed calls that make no sense deploy nothing, and hold up no other push', async () => {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  const web = await applicationIn(admin, environment);
  const hook = await webhookOf(admin);
  const bodies = [
    '',
    '{',
    'null',
    '[]',
    '"push"',
    '{"ref":{"a":1},"before":[],"after":7}',
    '{"__proto__":{"ref":"refs/heads/main"}}',
    JSON.stringify({ ref: 'refs/heads/main', before: a, after: '--upload-pack=sh' }),
    JSON.stringify({ ref: `refs/heads/${'x'.repeat(5000)}`, before: a, after: b }),
    JSON.stringify({ ref: 'refs/heads/ma\u0000in', before: a, after: b }),
    JSON.stringify({ ref: 'refs/heads/main', before: a, after: b, commits: 'none', head_commit: [], n: 1 }).replace(
      '"main"',
      '"main"',
    ),
    `[${'['.repeat(20_000)}${']'.repeat(20_000)}]`,
  ];
  for (const body of bodies) {
    const { status } = await call(hook, body, headersOf('GITHUB', body));
    expect([202, 400]).toContain(status);
  }
  const large = JSON.stringify({ ref: 'x'.repeat(1 << 20) });
  expect((await call(hook, large, headersOf('GITHUB', large))).status).toBe(413);
  // More values than are read, with a newer commit: the push deploys, as if the provider had not named the files.
  const last = commit('last');
  const many = bodyOfPush({ before: b, after: last, files: Array.from({ length: 30_000 }, (_, n) => `f${n}`) });
  expect((await call(hook, many, headersOf('GITHUB', many))).status).toBe(202);
  worker();
  const rows = await applied(admin);
  expect(rows.filter(({ error }) => error !== null).length).toBeGreaterThanOrEqual(7);
  expect(await requested(environment)).toEqual([{ [web]: last }]);
});

test('names of authors are shown without what a terminal obeys', async () => {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  await applicationIn(admin, environment);
  const hook = await webhookOf(admin);
  const body = bodyOfPush({ before: a, after: b }).replaceAll(
    '"Ada"',
    JSON.stringify(`\u001b[2J${'A'.repeat(5_000)}, root`),
  );
  await call(hook, body, headersOf('GITHUB', body));
  worker();
  await applied(admin);
  const [row] = await app.db
    .selectFrom('deployment')
    .select('requested_by_name')
    .where('environment_id', '=', environment)
    .execute();
  expect(row!.requested_by_name).toMatch(/^\\u001b\[2JA{1,100}$/);
});

test('a webhook is of one organization: two that have the same repository get their own pushes only', async () => {
  const [mine, other] = [await app.organization(), await app.organization()];
  const [here, there] = [await environmentOf(mine), await environmentOf(other)];
  const web = await applicationIn(mine, here);
  await applicationIn(other, there);
  const hook = await webhookOf(mine);
  const foreign = await webhookOf(other, undefined, 'their-secret');
  const body = bodyOfPush({ before: a, after: b });
  expect((await call(foreign, body, headersOf('GITHUB', body))).status).toBe(404);
  expect((await call(hook, body, headersOf('GITHUB', body))).status).toBe(202);
  worker();
  await applied(mine);
  expect(await requested(here)).toEqual([{ [web]: b }]);
  expect(await requested(there)).toEqual([]);
});

test('repositories of two servers on the ports of one host are two', async () => {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  const at = (port: string) => ({
    git_repository: { url: `https://git.invalid${port}/acme/shop.git`, branch: 'main' },
  });
  const web = await applicationIn(admin, environment, at(':3000'));
  const api = await applicationIn(admin, environment, at(':4000'));
  const plain = await applicationIn(admin, environment, at(':443'));
  const hook = await webhookOf(admin, 'git.invalid:3000/acme/shop');
  const body = bodyOfPush({ before: a, after: b });
  await call(hook, body, headersOf('GITHUB', body));
  worker();
  await applied(admin);
  expect(await requested(environment)).toEqual([{ [web]: b }]);
  const other = await webhookOf(admin);
  const second = bodyOfPush({ before: b, after: a });
  await call(other, second, headersOf('GITHUB', second));
  await applied(admin);
  expect(await requested(environment)).toEqual([{ [web]: b, [plain]: a }]);
  expect(JSON.stringify(await requested(environment))).not.toContain(api);
});

test('calls without a signature are limited for their webhook, and keep out neither its provider nor those of other webhooks', async () => {
  const admin = await app.organization();
  const flooded = await webhookOf(admin);
  const other = await webhookOf(admin, 'git.invalid/acme/other');
  const send = (hook: string, after: string) => {
    const body = bodyOfPush({ before: ZERO, after });
    return call(hook, body, headersOf('GITHUB', body));
  };
  const forge = (hook: string) => call(hook, '{}', headersOf('GITHUB', '{}', { secret: 'another' }));
  const statuses = [];
  for (let n = 0; n < 62; n++) statuses.push((await forge(flooded)).status);
  expect([statuses[0], ...statuses.slice(-2)]).toEqual([404, 429, 429]);
  // All calls of this test come from one address.
  expect((await send(other, a)).status).toBe(202);
  for (let n = 0; n < 62; n++) statuses.push((await forge(other)).status);
  expect((await send(other, b)).status).toBe(202);
});

test('calls for webhooks that are not there get the same answers, and keep out no provider', async () => {
  const admin = await app.organization();
  const hook = await webhookOf(admin);
  for (let n = 0; n < 100; n++) expect((await call(`/gitWebhook/${newId()}`, '{}', headersOf('GITHUB', '{}'))).status).toBe(404); // prettier-ignore
  const body = bodyOfPush({ before: ZERO, after: a });
  expect((await call(hook, body, headersOf('GITHUB', body))).status).toBe(202);
  const none = `/gitWebhook/${newId()}`;
  const statuses = [];
  for (let n = 0; n < 62; n++) statuses.push((await call(none, '{}', headersOf('GITHUB', '{}'))).status);
  expect([statuses[0], ...statuses.slice(-2)]).toEqual([404, 429, 429]);
});
