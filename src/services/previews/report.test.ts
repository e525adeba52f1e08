import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import { useProvider } from '#services/previews/provider.fixture.ts';
import { commit, headersOf } from '#services/pushes/pushes.fixture.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp({
  QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8',
  QUARTERDECK_BASE_URL: 'https://deck.acme.net',
});
const fixture = usePreviews(app);
const { webhookOf, tell, worker, settled, callsOf, environmentsOf } = fixture;
const [a, b] = [commit('a'), commit('b')];

const { provider, place: placeOf, told, reporter, reportsOf } = useProvider(app, fixture);
const place = async (options: Parameters<typeof placeOf>[0] = {}) => {
  const found = await placeOf(options);
  return { ...found, hook: await webhookOf(found.admin, found.key) };
};

/** Forgets the deployments of an organization: what nothing was begun of is gone with its row. */
const begunNothing = ({ organizationId }: Actor) =>
  app.db.deleteFrom('deployment').where('organization_id', '=', organizationId).execute();

test.each([
  ['GITHUB', '', `/api/v3/repos/acme/shop/statuses/${a}`],
  ['GITHUB', '/api/v1', `/api/v1/repos/acme/shop/statuses/${a}`],
  ['GITLAB', '', `/api/v4/projects/acme%2Fshop/statuses/${a}`],
  ['BITBUCKET', '', `/2.0/repositories/acme/shop/commit/${a}/statuses/build`],
])('one comment at %s%s stays current with state and address, and the head has a status', async (type, path, url) => {
  const { admin, hook } = await place({ type, path });
  worker();
  ok(await tell(hook, { head: a }), 202);
  const [preview] = await settled(admin);
  await told(admin);
  expect(provider.comments.size).toBe(1);
  const address = ok(await admin.get(`/environment/${preview!.environment_id}/link`), 200).results[0].url;
  expect(provider.comments.get('1')).toContain('Is being deployed.');
  expect(provider.comments.get('1')).toContain(address);
  expect(provider.statuses).toMatchObject([{ url, target: address }]);
  // The same is told once.
  await told(admin);
  expect(provider.statuses).toHaveLength(1);

  // A process that was killed before it stored the id finds its comment again.
  await sql`update pull_request_report set comment_id = null, told_comment = null, told_statuses = '{}'`.execute(
    app.db,
  );
  await sql`update deployment_service set state = 'DEPLOYMENT_ERROR', ended_at = now() where environment_id = ${preview!.environment_id}`.execute(
    app.db,
  );
  await sql`update deployment set status = 'ENDED', ended_at = now(), outcome = 'ERROR' where environment_id = ${preview!.environment_id}`.execute(
    app.db,
  );
  await told(admin);
  expect([provider.comments.size, provider.comments.get('1')]).toEqual([
    1,
    expect.stringContaining('Could not be deployed'),
  ]);

  ok(await tell(hook, { action: 'closed', head: a, at: 1 }), 202);
  await settled(admin);
  await told(admin);
  expect([provider.comments.size, provider.comments.get('1')]).toEqual([1, expect.stringContaining('Removed.')]);
});

test('a fork and a refusal are told, without the reasons that are not for everybody', async () => {
  const { admin, environment, hook } = await place();
  worker();
  ok(await tell(hook, { head: a, headRepository: 2 }), 202);
  await settled(admin);
  await told(admin);
  expect(provider.comments.get('1')).toContain('Waits for approval');
  ok(await admin.put(`/environment/${environment}`, { name: 'prod', mode: 'PRODUCTION' }), 200);
  ok(await admin.post(`/environment/${environment}/secret`, { key: 'PAYMENTS', value: 'top-secret' }), 201);
  ok(await tell(hook, { number: 8, head: b }), 202);
  await settled(admin);
  await told(admin);
  expect(provider.comments.get('2')).toContain('Refused');
  expect([...provider.comments.values()].join()).not.toContain('PAYMENTS');
  expect(provider.statuses.map(({ state }) => state)).toEqual(['pending', 'failure']);
});

test.each([
  ['comments', '/comments', 'may not write comments on pull requests of acme/shop'],
  ['statuses', '/statuses/', 'may not write commit statuses of acme/shop'],
])('a token that may not write %s still writes the others, and the reason is kept', async (_what, path, reason) => {
  const { admin, hook } = await place();
  worker();
  provider.refuses.set(path, 403);
  ok(await tell(hook, { head: a }), 202);
  await settled(admin);
  const [report] = await told(admin);
  expect(provider.statuses.length + provider.comments.size).toBe(1);
  expect(report!.error).toContain(reason);
});

test.each(['GITHUB', 'GITLAB', 'BITBUCKET'] as const)(
  'a comment that people have deleted at %s does not come back, and statuses are still told',
  async (type) => {
    const { admin, hook } = await place({ type });
    worker();
    ok(await tell(hook, { head: a }), 202);
    await settled(admin);
    await told(admin);
    provider.comments.set('1', '');
    ok(await tell(hook, { action: 'synchronize', head: b, at: 1 }), 202);
    await settled(admin);
    expect(await told(admin)).toMatchObject([{ comment_is_gone: true, error: null }]);
    ok(await tell(hook, { action: 'closed', head: b, at: 2 }), 202);
    await settled(admin);
    await told(admin);
    expect([...provider.comments]).toEqual([['1', '']]);
    const names = {
      GITHUB: ['pending', 'error'],
      GITLAB: ['pending', 'canceled'],
      BITBUCKET: ['INPROGRESS', 'STOPPED'],
    };
    const [pending, cancelled] = names[type];
    expect(provider.statuses.map(({ commit: of, state }) => [of, state])).toEqual([
      [a, pending],
      [b, pending],
      [b, cancelled],
    ]);
  },
);

test('a comment is not taken for deleted by a token that has lost the repository', async () => {
  const { admin, hook } = await place();
  worker();
  ok(await tell(hook, { head: a }), 202);
  await settled(admin);
  await told(admin);
  provider.refuses.set('/acme/shop/', 404);
  ok(await tell(hook, { action: 'synchronize', head: b, at: 1 }), 202);
  await settled(admin);
  const [report] = await told(admin);
  expect(report).toMatchObject({
    comment_is_gone: false,
    error: expect.stringContaining('has no repository acme/shop'),
  });
  provider.refuses.clear();
  await begunNothing(admin);
  ok(await tell(hook, { action: 'closed', head: b, at: 2 }), 202);
  await settled(admin);
  await told(admin);
  expect(provider.comments.get('1')).toContain('Removed.');
});

test('taking the label away passes no check that waits for the preview', async () => {
  const { admin, environment, hook } = await place();
  await fixture.setRule(admin, environment, { auto_preview: false, on_demand_preview: true });
  worker();
  ok(await tell(hook, { head: a, labels: ['preview'] }), 202);
  await settled(admin);
  await told(admin);
  await begunNothing(admin);
  ok(await tell(hook, { action: 'unlabeled', head: a, at: 1 }), 202);
  await settled(admin);
  await told(admin);
  expect(provider.statuses.map(({ commit: of, state }) => [of, state])).toEqual([
    [a, 'pending'],
    [a, 'error'],
  ]);
  ok(await tell(hook, { action: 'closed', head: a, at: 2 }), 202);
  await settled(admin);
  await told(admin);
  expect(provider.statuses.at(-1)!.state).toBe('error');
});

test('a pending status that GitLab has already is no failure', async () => {
  const { admin, hook } = await place({ type: 'GITLAB' });
  worker();
  ok(await tell(hook, { head: a }), 202);
  await settled(admin);
  await told(admin);
  await sql`update pull_request_report set told_statuses = '{}', told_comment = null`.execute(app.db);
  expect(await told(admin)).toMatchObject([{ error: null, attempts: 0 }]);
  expect(provider.statuses).toHaveLength(1);
});

test('environments of one name in two projects and organizations have statuses of their own', async () => {
  const one = await place();
  await placeOf({ admin: one.admin });
  const other = await place();
  worker();
  for (const { admin, hook } of [one, other]) {
    ok(await tell(hook, { head: a }), 202);
    await settled(admin);
    await told(admin);
  }
  const labels = provider.statuses.map(({ label }) => label);
  expect(labels).toHaveLength(3);
  expect(new Set(labels).size).toBe(3);
  for (const label of labels) expect(label).toMatch(/^quarterdeck\/preview\/dev \([0-9a-f]{8}\)$/);
});

/** Has a provider be told of a pull request, which answers nothing until its gate is opened. */
async function telling() {
  const { admin, hook } = await place();
  worker();
  ok(await tell(hook, { head: a }), 202);
  await settled(admin);
  const gate = Promise.withResolvers<void>();
  provider.gate = { of: '/statuses/', opened: gate.promise };
  const loop = reporter();
  void loop.look();
  await expect.poll(async () => (await reportsOf(admin))[0]!.status).toBe('RUNNING');
  return { admin, hook, gate, loop };
}

test('what changes while a provider is being told is told afterwards', async () => {
  const { admin, hook, gate } = await telling();
  await begunNothing(admin);
  ok(await tell(hook, { action: 'closed', head: a, at: 1 }), 202);
  await settled(admin);
  gate.resolve();
  await expect.poll(() => provider.comments.get('1')).toContain('Removed.');
  await expect.poll(async () => (await reportsOf(admin))[0]!.status).toBe('ENDED');
});

test('a call to a provider that does not answer is given up when the process stops, and counts as no attempt', async () => {
  const { admin, gate, loop } = await telling();
  await loop.stop();
  expect(await reportsOf(admin)).toMatchObject([{ attempts: 0, claim_token: null, told_statuses: {} }]);
  gate.resolve();
});

test('an organization whose provider does not answer keeps no other one from being told', async () => {
  const slow = await place({ repository: 'acme/slow' });
  const other = await place();
  worker();
  for (let number = 1; number <= 12; number++) ok(await tell(slow.hook, { number, head: a }), 202);
  await settled(slow.admin);
  const gate = Promise.withResolvers<void>();
  provider.gate = { of: 'acme/slow', opened: gate.promise };
  const loop = reporter();
  void loop.look();
  const running = async () => (await reportsOf(slow.admin)).filter(({ status }) => status === 'RUNNING').length;
  await expect.poll(running).toBe(2);
  ok(await tell(other.hook, { head: b }), 202);
  await settled(other.admin);
  void loop.look();
  await expect.poll(() => provider.comments.size, { timeout: 10_000 }).toBe(1);
  expect(await running()).toBe(2);
  gate.resolve();
});

test('a pull request is looked at while it has an environment, ever more seldom', async () => {
  const { admin, environment, hook } = await place();
  worker();
  ok(await tell(hook, { head: a, headRepository: 2 }), 202);
  await settled(admin);
  expect(await told(admin)).toMatchObject([{ status: 'ENDED' }]);
  ok(await tell(hook, { number: 8, head: b }), 202);
  await settled(admin);
  const pause = async (age: string) => {
    await sql`update pull_request_report set told_at = now() - ${age}::interval where status = 'WAITING'`.execute(
      app.db,
    );
    const report = (await told(admin)).find(({ status }) => status === 'WAITING')!;
    return Math.round((report.due_at.getTime() - Date.now()) / 1000);
  };
  expect(await pause('0')).toBeLessThanOrEqual(10);
  const long = await pause('50 minutes');
  expect([long > 280, long <= 300]).toEqual([true, true]);
  expect(await pause('3 days')).toBeLessThanOrEqual(600);
  await sql`delete from deployment where environment_id <> ${environment}`.execute(app.db);
  const preview = (await environmentsOf(admin)).find(({ name }) => name === 'dev PR 8')!;
  ok(await admin.delete(`/environment/${preview.id}`), 204);
  expect((await told(admin)).map(({ status }) => status)).toEqual(['ENDED', 'ENDED']);
  expect(provider.comments.get('2')).toContain('Removed; the next commit makes it again.');
});

test('a comment /preview of a member makes the preview, that of anybody else does not', async () => {
  const { admin, environment, hook } = await place();
  await fixture.setRule(admin, environment, { auto_preview: false, on_demand_preview: true });
  worker();
  const comment = async (author_association: string, body: string, number = 7) => {
    const text = JSON.stringify({
      action: 'created',
      issue: { number, pull_request: { url: 'https://git.invalid' } },
      comment: { id: newId(), body, author_association },
    });
    ok(await fixture.call(hook, text, headersOf('GITHUB', text, { event: 'issue_comment' })), 202);
    await settled(admin);
    return (await callsOf(admin)).at(-1)!.error;
  };
  ok(await tell(hook, { head: a }), 202);
  expect(await settled(admin)).toEqual([]);
  expect(await comment('CONTRIBUTOR', '/preview')).toContain('no owner, member or collaborator');
  expect(await comment('MEMBER', 'see /preview')).toBe(null);
  expect(await comment('MEMBER', '/preview', 99)).toContain('Nothing is known of pull request 99');
  expect((await environmentsOf(admin)).map(({ name }) => name)).toEqual(['dev']);
  expect(await comment('COLLABORATOR', '/preview')).toBe(null);
  expect((await environmentsOf(admin)).map(({ name }) => name)).toEqual(['dev', 'dev PR 7']);
  ok(await tell(hook, { action: 'synchronize', head: b, at: 1 }), 202);
  expect(await settled(admin)).toMatchObject([{ outcome: 'PREVIEWED', applied_commit: b }]);
});
