import { expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import { commit, headersOf } from '#services/pushes/pushes.fixture.ts';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
const { webhookOf, sourceOf, setRule, tell, call, worker, settled, environmentsOf } = usePreviews(app);

const [a, b, c] = [commit('a'), commit('b'), commit('c')];
const namesOf = async (admin: Actor) => (await environmentsOf(admin)).map(({ name }) => name);

async function place(previews?: object) {
  const admin = await app.organization();
  const source = await sourceOf(admin, {}, previews);
  worker();
  return { admin, ...source, hook: await webhookOf(admin) };
}

const roleOf = async ({ organizationId, userId }: Actor, name: string) => {
  const role = await app.db
    .selectFrom('role')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('name', 'ilike', name)
    .executeTakeFirstOrThrow();
  await sql`update member set role_id = ${role.id} where user_id = ${userId}`.execute(app.db);
};

test('whoever saved the rule and became a viewer makes and updates no previews, and those that are there still end', async () => {
  const { admin, hook } = await place();
  ok(await tell(hook, { head: a }), 202);
  expect(await settled(admin)).toMatchObject([{ outcome: 'PREVIEWED' }]);
  await roleOf(admin, 'viewer');
  ok(await tell(hook, { action: 'synchronize', head: b, at: 1 }), 202);
  ok(await tell(hook, { number: 8, head: c }), 202);
  const refused = await settled(admin);
  expect(refused).toMatchObject([
    { outcome: 'REFUSED', applied_commit: a },
    { outcome: 'REFUSED', environment_id: null },
  ]);
  for (const { error } of refused) expect(error).toContain('somebody who may must save it again');
  expect(await namesOf(admin)).toEqual(['dev', 'dev PR 7']);
  ok(await tell(hook, { action: 'closed', head: b, at: 2 }), 202);
  expect((await settled(admin))[0]).toMatchObject({ outcome: 'REMOVED' });
  await sql`delete from deployment where organization_id = ${admin.organizationId}`.execute(app.db);
});

test('whoever saved the rule and left the organization makes no previews', async () => {
  const { admin, hook } = await place();
  await sql`delete from member where user_id = ${admin.userId}`.execute(app.db);
  ok(await tell(hook, { head: a }), 202);
  expect(await settled(admin)).toMatchObject([{ outcome: 'REFUSED', environment_id: null }]);
  expect(await namesOf(admin)).toEqual(['dev']);
});

test('a rule saved with a token of scope DEPLOY, which may not save it, is refused and the former one stays', async () => {
  const { admin, environment, hook } = await place();
  const deployer = await admin.withScope('DEPLOY');
  const rule = ok(await admin.get(`/environment/${environment}/deploymentRule`), 200);
  const { id, timezone, start_time, stop_time, weekdays } = rule;
  const body = { timezone, start_time, stop_time, weekdays, auto_preview: false };
  ok(await deployer.put(`/environment/${environment}/deploymentRule/${id}`, body), 403);
  ok(await tell(hook, { head: a }), 202);
  expect(await settled(admin)).toMatchObject([{ outcome: 'PREVIEWED' }]);
});

test('a PRODUCTION environment without secrets is previewed in the mode PREVIEW, and with one not any more', async () => {
  const { admin, environment, hook } = await place();
  ok(await admin.put(`/environment/${environment}`, { name: 'prod', mode: 'PRODUCTION' }), 200);
  ok(await tell(hook, { head: a }), 202);
  await settled(admin);
  const modes = async () => (await environmentsOf(admin)).map(({ name, mode }) => [name, mode]);
  expect(await modes()).toEqual([
    ['prod', 'PRODUCTION'],
    ['prod PR 7', 'PREVIEW'],
  ]);
  ok(await admin.post(`/environment/${environment}/secret`, { key: 'PAYMENTS', value: 'top-secret' }), 201);
  ok(await tell(hook, { number: 8, head: b }), 202);
  expect((await settled(admin))[1]).toMatchObject({ outcome: 'REFUSED', error: expect.stringContaining('PAYMENTS') });
  expect(await modes()).toHaveLength(2);
});

test('no label, comment or reopening has the pull request of a fork deployed', async () => {
  const { admin, environment, hook } = await place({ auto_preview: false, on_demand_preview: true });
  await setRule(admin, environment, { auto_preview: true, on_demand_preview: true });
  const fork = { head: a, headRepository: 2 };
  ok(await tell(hook, fork), 202);
  ok(await tell(hook, { ...fork, action: 'labeled', labels: ['preview'], at: 1 }), 202);
  const body = JSON.stringify({
    action: 'created',
    issue: { number: 7, pull_request: { url: 'https://git.invalid' } },
    comment: { id: newId(), body: '/preview', author_association: 'OWNER' },
  });
  ok(await call(hook, body, headersOf('GITHUB', body, { event: 'issue_comment' })), 202);
  ok(await tell(hook, { ...fork, action: 'closed', at: 2 }), 202);
  ok(await tell(hook, { ...fork, action: 'reopened', head: b, at: 3 }), 202);
  expect(await settled(admin)).toMatchObject([{ outcome: 'AWAITS_APPROVAL', environment_id: null }]);
  expect(await namesOf(admin)).toEqual(['dev']);
  expect(
    await app.db.selectFrom('deployment').select('id').where('organization_id', '=', admin.organizationId).execute(),
  ).toEqual([]);
});
