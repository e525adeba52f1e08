import { beforeEach, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { KINDS } from '#services/mount.ts';
import { reconcileFollowed } from '#services/pushes/polling.ts';
import { commit, usePushes } from '#services/pushes/pushes.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();
const { environmentOf, applicationIn, webhookOf, push, worker, applied, requested } = usePushes(app);
const [a, b] = [commit('a'), commit('b')];
const URL_OF_SHOP = 'https://git.invalid/acme/shop.git';
const of = (branch: string) => ({ git_repository: { url: URL_OF_SHOP, branch } });

beforeEach(async () => void (await sql`truncate git_branch, git_push, service cascade`.execute(app.db)));

/** Gives a service a ref, as it may have been stored before the refusal. */
const store = (id: string, branch: string) =>
  sql`update service set spec = jsonb_set(spec, '{git_repository,branch}', to_jsonb(${branch}::text)) where id = ${id}`.execute(
    app.db,
  );

test.each(['refs/pull/9/head', 'refs/merge-requests/9/head', 'refs/changes/01/1/1'])(
  'auto_deploy of %s is refused, whichever of both is set first',
  async (branch) => {
    const admin = await app.organization();
    const environment = await environmentOf(admin);
    const errors = [{ field: 'auto_deploy', message: expect.stringContaining(branch) }];
    const url = `/environment/${environment}/application`;
    const body = { name: 'one', ...of(branch) };
    expect(ok(await admin.post(url, { ...body, auto_deploy: true }), 400).errors).toEqual(errors);
    const { id } = ok(await admin.post(url, body), 201);
    expect(ok(await admin.put(`/application/${id}`, { auto_deploy: true }), 400).errors).toEqual(errors);
    const main = await applicationIn(admin, environment);
    expect(ok(await admin.put(`/application/${main}`, of(branch)), 400).errors).toEqual(errors);
    expect(ok(await admin.get(`/application/${main}`), 200)).toMatchObject({
      auto_deploy: true,
      git_repository: { branch: 'main' },
    });
    ok(await admin.put(`/application/${main}`, { ...of(branch), auto_deploy: false }), 200);
    for (const name of ['refs/heads/main', 'refs/tags/v1', 'HEAD', 'pull/9/head'])
      ok(await admin.put(`/application/${main}`, { ...of(name), auto_deploy: true }), 200);
  },
);

test('auto_deploy is refused for values in git of a ref of strangers', async () => {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  const errors = [{ field: 'auto_deploy', message: expect.stringContaining('refs/pull/9/head') }];
  const helm = {
    name: 'chart',
    source: { git_repository: { url: URL_OF_SHOP, branch: 'main', root_path: '/' } },
    values_override: {
      file: { git: { git_repository: of('refs/pull/9/head').git_repository, paths: ['values.yaml'] } },
    },
    allow_cluster_wide_resources: false,
    arguments: [],
    timeout_sec: 60,
    auto_deploy: true,
  };
  expect(ok(await admin.post(`/environment/${environment}/helm`, helm), 400).errors).toEqual(errors);
  ok(await admin.post(`/environment/${environment}/helm`, { ...helm, auto_deploy: false }), 201);
});

test('what follows a ref of strangers since before the refusal is neither polled nor deployed by a push, and can be edited', async () => {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  const hook = await webhookOf(admin);
  const [foreign, own] = [await applicationIn(admin, environment), await applicationIn(admin, environment)];
  const ref = 'refs/pull/9/head';
  await store(foreign, ref);
  await reconcileFollowed(app.platform, KINDS);
  const branches = await app.db.selectFrom('git_branch').select('branch').execute();
  expect(branches).toEqual([{ branch: 'main' }]);
  await app.db.updateTable('service').set({ wanted: 'running' }).where('id', 'in', [foreign, own]).execute();
  worker();
  await push(hook, { branch: ref, before: a, after: b });
  await push(hook, { before: a, after: b });
  await applied(admin);
  expect(await requested(environment)).toEqual([{ [own]: b }]);
  ok(await admin.put(`/application/${foreign}`, { description: 'Kept as it is.' }), 200);
  expect(ok(await admin.put(`/application/${foreign}`, of('refs/pull/10/head')), 400).errors).toMatchObject([
    { field: 'auto_deploy' },
  ]);
  ok(await admin.put(`/application/${foreign}`, of('main')), 200);
});
