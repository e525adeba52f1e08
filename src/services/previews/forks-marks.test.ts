import { expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { findPreviewRefusal } from '#services/capabilities/service/git-webhook/queries.ts';
import { useForkCalls } from '#services/previews/fork-calls.fixture.ts';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import { commit } from '#services/pushes/pushes.fixture.ts';
import type { Sender } from '#services/pushes/signature.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
const fixture = usePreviews(app);
const { applicationIn, worker, nudge, settled, environmentsOf, servicesOf, requested } = fixture;
const { place, namesOf, forget, removed } = useForkCalls(app, fixture);

const [a, b] = [commit('a'), commit('b')];

/** Pull request that a push to `refs/for/main/x` makes at Gitea and Forgejo: repository and ref of its head are of the base. */
const AGIT = { headRepository: 1, headBranch: 'refs/pull/7/head' };
const OWN = { headRepository: 1 };

/** Marks of the previews that are not being deleted. */
const marksOf = async (admin: Actor) =>
  (await environmentsOf(admin)).filter(({ mode }) => mode === 'PREVIEW').map(({ fork_ref }) => fork_ref);

const secondsToLook = async (admin: Actor) =>
  ((await fixture.previewsOf(admin))[0]!.due_at.getTime() - Date.now()) / 1000;

/** Reads after the workers were told to look for work. */
const looked =
  <T>(read: () => Promise<T>) =>
  () => {
    nudge();
    return read();
  };

test.each(['GITEA', 'GITHUB', 'GITLAB', 'BITBUCKET'] as Sender[])(
  'a pull request of %s whose head is no branch waits for approval, also if its repository is that of the base',
  async (sender) => {
    const { admin, environment, say, list } = await place(sender);
    worker();
    await say({ ...AGIT, head: a });
    expect(await settled(admin)).toMatchObject([{ outcome: 'AWAITS_APPROVAL', environment_id: null }]);
    expect(await list()).toMatchObject([{ awaits_approval: true, head_branch: 'refs/pull/7/head' }]);
    expect(await namesOf(admin)).toEqual(['dev']);
    const told = await findPreviewRefusal(app.db, admin, 'git.invalid/acme/shop', environment);
    expect(told).toContain('waits for approval');
  },
);

test('a pull request by a push to refs/for at Gitea is deployed without secrets once it is approved', async () => {
  const { admin, waiting, say } = await place('GITEA');
  const url = await waiting({ ...AGIT, head: a });
  ok(await admin.put(url, { commit_id: a }), 200);
  worker();
  const [made] = await settled(admin);
  expect(made).toMatchObject({ outcome: 'PREVIEWED', applied_commit: a });
  expect(await marksOf(admin)).toEqual(['refs/pull/7/head']);
  await say({ ...AGIT, action: 'synchronize', head: b, at: 1 });
  expect(await settled(admin)).toMatchObject([{ outcome: 'AWAITS_APPROVAL', applied_commit: a }]);
  const { web } = await servicesOf(made!.environment_id!);
  expect(await requested(made!.environment_id!)).toEqual([{ [web!.id]: a }]);
  await forget(admin);
});

test('a preview with secrets is removed once its head is of a fork, and made without them after an approval', async () => {
  const { admin, say, list, approvalOf } = await place();
  const loops = worker();
  await say({ ...OWN, head: a });
  await settled(admin);
  expect(await marksOf(admin)).toEqual([null]);
  await say({ headRepository: null, action: 'edited', head: a, at: 1 });
  expect(await settled(admin)).toMatchObject([{ outcome: 'AWAITS_APPROVAL', applied_commit: null }]);
  expect(await namesOf(admin)).toEqual(['dev']);
  await loops.stop();

  // Approved while it is being removed: it is made behind the removal.
  ok(await admin.put(approvalOf((await list())[0].id), { commit_id: a }), 200);
  worker();
  await expect.poll(looked(() => secondsToLook(admin))).toBeGreaterThan(1);
  await removed(admin);
  expect(await settled(admin)).toMatchObject([{ outcome: 'PREVIEWED', applied_commit: a }]);
  expect(await marksOf(admin)).toEqual(['refs/pull/7/head']);
  await forget(admin);
});

test('an approval that is there before a preview with secrets is removed takes effect after it', async () => {
  const { admin, say, list, approvalOf } = await place();
  const loops = worker();
  await say({ ...OWN, head: a });
  const [before] = await settled(admin);
  await loops.stop();
  await sql`update pull_request set is_fork = true where organization_id = ${admin.organizationId}`.execute(app.db);
  ok(await admin.put(approvalOf((await list())[0].id), { commit_id: a }), 200);
  worker();
  await expect.poll(looked(() => namesOf(admin))).toEqual(['dev']);
  await removed(admin);
  const [after] = await settled(admin);
  expect(after).toMatchObject({ outcome: 'PREVIEWED', applied_commit: a, approved_commit: a });
  expect(after!.environment_id).not.toBe(before!.environment_id);
  expect(await marksOf(admin)).toEqual(['refs/pull/7/head']);
  await forget(admin);
});

test('the preview of a fork is made anew with the rights of the rule once its head is in the repository', async () => {
  const { admin, waiting, say } = await place();
  ok(await admin.put(await waiting({ head: a }), { commit_id: a }), 200);
  worker();
  await settled(admin);
  expect(await marksOf(admin)).toEqual(['refs/pull/7/head']);
  await forget(admin);
  await say({ ...OWN, action: 'edited', head: b, at: 1 });
  expect(await settled(admin)).toMatchObject([{ outcome: 'PREVIEWED', applied_commit: b }]);
  expect(await marksOf(admin)).toEqual([null]);
  await forget(admin);
});

test('a preview on a locked cluster is not replaced before the lock ends', async () => {
  const { admin, say } = await place();
  worker();
  await say({ ...OWN, head: a });
  await settled(admin);
  await forget(admin);
  await sql`update cluster set locked_at = now() where organization_id = ${admin.organizationId}`.execute(app.db);
  await say({ headRepository: null, action: 'edited', head: a, at: 1 });
  await expect.poll(looked(() => secondsToLook(admin))).toBeGreaterThan(30);
  expect(await namesOf(admin)).toEqual(['dev', 'dev PR 7']);
});

test('an approval while the preview is being deleted makes it again afterwards', async () => {
  const { admin, waiting } = await place();
  const url = await waiting({ head: a });
  ok(await admin.put(url, { commit_id: a }), 200);
  worker();
  const [made] = await settled(admin);
  ok(await admin.delete(`/environment/${made!.environment_id}`), 204);
  expect((await environmentsOf(admin)).map(({ name }) => name)).toEqual(['dev']);
  ok(await admin.put(url, { commit_id: a }), 200);
  await removed(admin);
  const [again] = await settled(admin);
  expect(again).toMatchObject({ outcome: 'PREVIEWED', applied_commit: a, environment_id: expect.any(String) });
  expect(again!.environment_id).not.toBe(made!.environment_id);
  await forget(admin);
});

test('a fork that only services with rights would show is refused with their names, not told as deployed', async () => {
  const { admin, environment, waiting } = await place('GITHUB', { auto_preview: false });
  const git_repository = { url: 'https://git.invalid/acme/shop.git', branch: 'main' };
  const chart = {
    name: 'chart',
    auto_preview: true,
    source: { git_repository: { ...git_repository, root_path: '/chart' } },
    arguments: [],
    values_override: {},
  };
  ok(await admin.post(`/environment/${environment}/helm`, chart), 201);
  const job = {
    name: 'cloud',
    auto_preview: true,
    source: { docker: { git_repository } },
    healthchecks: {},
    schedule: { on_start: { arguments: ['apply'] }, lifecycle_type: 'CLOUDFORMATION' },
  };
  ok(await admin.post(`/environment/${environment}/job`, job), 201);
  const url = await waiting({ head: a });
  ok(await admin.put(url, { commit_id: a }), 200);
  const loops = worker();
  const [refused] = await settled(admin);
  expect(refused).toMatchObject({ outcome: 'REFUSED', environment_id: null, applied_commit: null });
  for (const name of ['chart', 'cloud'])
    expect(refused!.error).toContain(`${name} does not run in the preview of a fork`);
  expect(await namesOf(admin)).toEqual(['dev']);
  await loops.stop();

  // A service beside them that may run is enough.
  const { web } = await servicesOf(environment);
  ok(await admin.put(`/application/${web!.id}`, { auto_preview: true }), 200);
  ok(await admin.put(url, { commit_id: a }), 200);
  worker();
  const [made] = await settled(admin);
  expect(made).toMatchObject({ outcome: 'PREVIEWED', error: null });
  expect(Object.keys(await servicesOf(made!.environment_id!))).toEqual(['web']);
  await forget(admin);
});

test('a later commit of a fork is deployed in all that waits with the former one, also if a service was skipped since', async () => {
  const { admin, environment, waiting, say } = await place();
  await applicationIn(admin, environment, { name: 'api', auto_preview: true });
  const url = await waiting({ head: a });
  ok(await admin.put(url, { commit_id: a }), 200);
  worker();
  const [made] = await settled(admin);
  const id = made!.environment_id!;
  const { web, api } = await servicesOf(id);
  expect(await requested(id)).toEqual([{ [web!.id]: a, [api!.id]: a }]);
  await sql`update service set is_skipped = true where id = ${api!.id}`.execute(app.db);
  await say({ action: 'synchronize', head: b, at: 1 });
  await settled(admin);
  ok(await admin.put(url, { commit_id: b }), 200);
  const [after] = await settled(admin);
  expect(after).toMatchObject({ outcome: 'PREVIEWED', error: null, applied_commit: b });
  // The skipped one waits already: nothing else of the fork than the approved commit may run.
  expect(await requested(id)).toEqual([{ [web!.id]: b, [api!.id]: b }]);
  expect(after!.awaited).toEqual({ [web!.id]: b, [api!.id]: b });
  await forget(admin);
});
