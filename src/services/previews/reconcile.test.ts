import { expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { findPreviewRefusal } from '#services/capabilities/service/git-webhook/queries.ts';
import { SHOP, commit } from '#services/pushes/pushes.fixture.ts';
import { bodyOfPullRequest, pullRequestHeaders, usePreviews } from '#services/previews/previews.fixture.ts';
import type { Sender } from '#services/pushes/signature.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp({ QUARTERDECK_PREVIEWS_PER_ORGANIZATION: '2' });
const fixture = usePreviews(app);
const { git, applicationIn, webhookOf, sourceOf, setRule, tell, worker, settled, callsOf, environmentsOf, servicesOf, requested } = fixture; // prettier-ignore

const [a, b, c] = [commit('a'), commit('b'), commit('c')];

const namesOf = async (admin: Actor) => (await environmentsOf(admin)).map(({ name }) => name);

async function place(body: object = {}, previews?: object) {
  const admin = await app.organization();
  const source = await sourceOf(admin, body, previews);
  return { admin, ...source, hook: await webhookOf(admin) };
}

test.each(['GITHUB', 'GITEA', 'GITLAB', 'BITBUCKET'] as Sender[])(
  'a pull request that %s tells of is shown, brought up to date and removed',
  async (sender) => {
    const { admin, hook } = await place();
    worker();
    const shown = (head: string) => (sender === 'BITBUCKET' ? head.slice(0, 12) : head);
    ok(await tell(hook, { head: a }, sender), 202);
    const [preview] = await settled(admin);
    expect(preview).toMatchObject({ outcome: 'PREVIEWED', applied_commit: shown(a) });
    ok(await tell(hook, { action: 'synchronize', head: b, at: 1 }, sender), 202);
    await settled(admin);
    const { web } = await servicesOf(preview!.environment_id!);
    // The first deployment was still waiting: the second head takes the place of the first.
    expect(await requested(preview!.environment_id!)).toEqual([{ [web!.id]: shown(b) }]);
    ok(await tell(hook, { action: 'closed', head: b, at: 2 }, sender), 202);
    expect(await settled(admin)).toMatchObject([{ outcome: 'REMOVED' }]);
    await expect.poll(() => namesOf(admin)).toEqual(['dev']);
  },
);

test('calls that come twice, late or in another order leave one preview with the last head, and a closed one none', async () => {
  const { admin, hook } = await place();
  worker();
  const calls = [
    { action: 'opened', head: a, at: 0 },
    { action: 'synchronize', head: b, at: 1 },
    { action: 'synchronize', head: c, at: 2 },
  ] as const;
  for (const at of [2, 0, 1, 2, 0]) ok(await tell(hook, { ...calls[at]! }), 202);
  expect(await settled(admin)).toMatchObject([{ outcome: 'PREVIEWED', applied_commit: c }]);
  expect(await namesOf(admin)).toEqual(['dev', 'dev PR 7']);

  ok(await tell(hook, { number: 8, action: 'closed', at: 3 }), 202);
  ok(await tell(hook, { number: 8, action: 'opened', at: 2 }), 202);
  ok(await tell(hook, { number: 8, action: 'synchronize', at: 3 }), 202);
  await settled(admin);
  expect(await namesOf(admin)).toEqual(['dev', 'dev PR 7']);
  expect((await callsOf(admin)).at(-1)!.error).toContain('later state');
});

test('a pull request that is closed before its preview was begun gets none, and reopened gets one', async () => {
  const { admin, hook } = await place();
  ok(await tell(hook, { head: a }), 202);
  ok(await tell(hook, { action: 'closed', head: a, at: 1 }), 202);
  worker();
  await expect.poll(async () => (await callsOf(admin)).every(({ status }) => status === 'ENDED')).toBe(true);
  await settled(admin);
  expect(await namesOf(admin)).toEqual(['dev']);
  ok(await tell(hook, { action: 'reopened', head: a, at: 2 }), 202);
  expect(await settled(admin)).toMatchObject([{ outcome: 'PREVIEWED' }]);
  expect(await namesOf(admin)).toEqual(['dev', 'dev PR 7']);
});

test('a call with another signature, and one of long ago, show nothing', async () => {
  const { admin, hook } = await place();
  worker();
  const body = bodyOfPullRequest('GITHUB', {});
  const headers = { ...pullRequestHeaders('GITHUB', body), 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` };
  expect((await fixture.call(hook, body, headers)).status).toBe(404);
  ok(await tell(hook, { at: -8 * 24 * 3600 }), 202);
  await settled(admin);
  expect((await callsOf(admin)).map(({ error }) => error)).toEqual(['The call is about a change of long ago.']);
  expect(await namesOf(admin)).toEqual(['dev']);
});

test('an environment without the rule, a service without auto_preview, another branch and another repository show nothing', async () => {
  const { admin, environment, hook } = await place({ auto_preview: false });
  await applicationIn(admin, environment, { auto_preview: true, git_repository: { url: SHOP, branch: 'next' } });
  const other = 'https://git.invalid/acme/other.git';
  await applicationIn(admin, environment, { auto_preview: true, git_repository: { url: other, branch: 'main' } });
  const without = await sourceOf(admin, {}, { auto_preview: false, on_demand_preview: true });
  worker();
  ok(await tell(hook), 202);
  expect(await settled(admin)).toEqual([]);
  expect(await requested(without.environment)).toEqual([]);
});

test('a pull request of a fork waits for approval, also if the repository of its head is gone', async () => {
  const { admin, environment, hook } = await place();
  worker();
  ok(await tell(hook, { headRepository: 2 }), 202);
  ok(await tell(hook, { number: 8, headRepository: null }), 202);
  expect(await settled(admin)).toMatchObject([{ outcome: 'AWAITS_APPROVAL' }, { outcome: 'AWAITS_APPROVAL' }]);
  const told = await findPreviewRefusal(app.db, admin, 'git.invalid/acme/shop', environment);
  expect(told).toContain('waits for approval');
  expect(await namesOf(admin)).toEqual(['dev']);
});

test('a preview is not itself shown, nor deployed by a push to its branch', async () => {
  const { admin, hook } = await place({ auto_deploy: true });
  worker();
  ok(await tell(hook, { head: a }), 202);
  const [preview] = await settled(admin);
  ok(await tell(hook, { number: 8, base: 'feature', headBranch: 'more' }), 202);
  await settled(admin);
  expect(await namesOf(admin)).toEqual(['dev', 'dev PR 7']);
  fixture.worker();
  const { web } = await servicesOf(preview!.environment_id!);
  expect(web!.spec).toMatchObject({ auto_deploy: false, auto_preview: false });
});

test('secrets of PRODUCTION are in no preview: it is refused with their names', async () => {
  const { admin, environment, web, hook } = await place();
  ok(await admin.put(`/environment/${environment}`, { name: 'prod', mode: 'PRODUCTION' }), 200);
  ok(await admin.post(`/environment/${environment}/secret`, { key: 'PAYMENTS', value: 'top-secret' }), 201);
  worker();
  ok(await tell(hook), 202);
  const [refused] = await settled(admin);
  expect(refused).toMatchObject({ outcome: 'REFUSED', environment_id: null });
  expect(refused!.error).toContain('PAYMENTS');
  expect(refused!.error).not.toContain('top-secret');
  expect(await namesOf(admin)).toEqual(['prod']);
  const told = await findPreviewRefusal(app.db, admin, 'git.invalid/acme/shop', environment);
  expect(told).toMatch(/^Pull request 7 has no preview: Secrets of a PRODUCTION environment/);
  expect(web).toBeDefined();
});

test('a rule gives no more rights than its last editor has when it takes effect', async () => {
  const { admin, environment, hook } = await place();
  const editor = await admin.withScope('WRITE');
  await setRule(editor, environment);
  worker();
  ok(await tell(hook, { head: a }), 202);
  const [preview] = await settled(admin);
  expect(preview).toMatchObject({ outcome: 'PREVIEWED' });
  const { set_with } = await app.db
    .selectFrom('environment_deployment_rule')
    .select('set_with')
    .where('environment_id', '=', environment)
    .executeTakeFirstOrThrow();
  ok(await admin.delete(`/organization/${admin.organizationId}/apiToken/${set_with}`), 204);
  ok(await tell(hook, { action: 'synchronize', head: b, at: 1 }), 202);
  const [refused] = await settled(admin);
  expect(refused).toMatchObject({ outcome: 'REFUSED', applied_commit: a });
  expect(refused!.error).toContain('somebody who may must save it again');
  ok(await tell(hook, { number: 8, head: b }), 202);
  expect((await settled(admin))[1]).toMatchObject({ outcome: 'REFUSED', environment_id: null });
  await setRule(admin, environment);
  ok(await tell(hook, { action: 'synchronize', head: c, at: 2 }), 202);
  expect((await settled(admin))[0]).toMatchObject({ outcome: 'PREVIEWED', applied_commit: c });
});

test('an organization has no more previews than the settings allow, and gets the refused one when there is room', async () => {
  const { admin, hook } = await place();
  worker();
  for (const number of [1, 2, 3]) ok(await tell(hook, { number }), 202);
  const refused = (await settled(admin)).filter(({ outcome }) => outcome === 'REFUSED');
  expect(refused).toHaveLength(1);
  expect(refused[0]!.error).toContain('has 2 previews, which is the limit');
  for (const number of [1, 2, 3]) ok(await tell(hook, { number, action: 'closed', at: 1 }), 202);
  await settled(admin);
  ok(await tell(hook, { number: 3, action: 'reopened', at: 2 }), 202);
  await settled(admin);
  expect(await namesOf(admin)).toEqual(['dev', 'dev PR 3']);
});

test('a preview that was deleted by hand comes back with the next commit, not before', async () => {
  const { admin, hook } = await place();
  worker();
  ok(await tell(hook, { head: a }), 202);
  const [preview] = await settled(admin);
  await sql`delete from deployment where environment_id = ${preview!.environment_id}`.execute(app.db);
  ok(await admin.delete(`/environment/${preview!.environment_id}`), 204);
  ok(await tell(hook, { action: 'edited', head: a, at: 1 }), 202);
  expect(await settled(admin)).toMatchObject([{ environment_id: null }]);
  ok(await tell(hook, { action: 'synchronize', head: b, at: 2 }), 202);
  await settled(admin);
  expect(await namesOf(admin)).toEqual(['dev', 'dev PR 7']);
});

test('the label preview, and its removal, make and remove the preview of an environment that shows on demand', async () => {
  const { admin, hook } = await place({}, { on_demand_preview: true });
  worker();
  ok(await tell(hook, { head: a }), 202);
  expect(await settled(admin)).toEqual([]);
  ok(await tell(hook, { action: 'labeled', head: a, labels: ['Preview'], at: 1 }), 202);
  await settled(admin);
  expect(await namesOf(admin)).toEqual(['dev', 'dev PR 7']);
  ok(await tell(hook, { action: 'unlabeled', head: a, at: 2 }), 202);
  await settled(admin);
  await expect.poll(() => namesOf(admin)).toEqual(['dev']);
});

test('services whose files a pull request does not change are not deployed by it', async () => {
  const { admin, environment, web, hook } = await place();
  const restriction = { mode: 'MATCH', type: 'PATH', value: 'web' };
  ok(await admin.post(`/application/${web}/deploymentRestriction`, restriction), 201);
  worker();
  git.changes = { author: 'Grace', message: '', paths: ['docs/readme.md'] };
  ok(await tell(hook, { head: a }), 202);
  expect(await settled(admin)).toMatchObject([{ outcome: 'NOT_AFFECTED', source_id: environment }]);
  git.changes = { author: 'Grace', message: '', paths: ['web/index.js'] };
  ok(await tell(hook, { action: 'synchronize', head: b, at: 1 }), 202);
  const [preview] = await settled(admin);
  const id = preview!.environment_id!;
  const copy = (await servicesOf(id)).web!.id;
  expect(await requested(id)).toEqual([{ [copy]: b }]);
  git.changes = { author: 'Grace', message: '', paths: ['docs/readme.md'] };
  ok(await tell(hook, { action: 'synchronize', head: c, at: 2 }), 202);
  expect(await settled(admin)).toMatchObject([{ applied_commit: c }]);
  expect(await requested(id)).toEqual([{ [copy]: b }]);
});
