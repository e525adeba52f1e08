import { expect, test } from 'vitest';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import { commit } from '#services/pushes/pushes.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';

const app = useApp();
useEngine(app, {}, undefined, { pretendsSources: true });
const { applicationIn, webhookOf, sourceOf, tell, worker, settled, environmentsOf, servicesOf, requested } = usePreviews(app); // prettier-ignore

const [a, b] = [commit('a'), commit('b')];

test('a pull request runs in an environment of its own until it is closed, and nothing of it is left', async () => {
  const admin = await app.organization();
  const { environment, web } = await sourceOf(admin);
  const api = await applicationIn(admin, environment, {
    name: 'api',
    git_repository: { url: 'https://git.invalid/acme/api.git', branch: 'main' },
  });
  ok(await admin.post(`/environment/${environment}/deploy?wait=60`), 200);
  const released = ok(await admin.get(`/application/${api}`), 200).git_repository.deployed_commit_id;
  const hook = await webhookOf(admin);
  worker();

  ok(await tell(hook, { head: a }), 202);
  const [preview] = await settled(admin);
  expect(preview).toMatchObject({ outcome: 'PREVIEWED', error: null, applied_commit: a, source_id: environment });
  const id = preview!.environment_id!;
  expect(ok(await admin.get(`/environment/${id}`), 200)).toMatchObject({
    name: 'dev PR 7',
    mode: 'PREVIEW',
    expires_at: expect.any(String),
  });
  const copies = await servicesOf(id);
  expect(copies.web!.spec).toMatchObject({ auto_deploy: false, git_repository: { branch: 'feature' } });
  expect(copies.api!.spec).toMatchObject({ auto_deploy: false, git_repository: { branch: 'main' } });
  expect(await requested(id)).toEqual([{ [copies.web!.id]: a, [copies.api!.id]: released }]);
  await expect
    .poll(async () => ok(await admin.get(`/application/${copies.web!.id}/status`), 200).state)
    .toBe('DEPLOYED');
  expect(ok(await admin.get(`/application/${copies.web!.id}`), 200).git_repository.deployed_commit_id).toBe(a);
  // The source keeps its own branch.
  expect(ok(await admin.get(`/application/${web}`), 200).git_repository.branch).toBe('main');

  ok(await tell(hook, { action: 'synchronize', head: b, at: 1 }), 202);
  await settled(admin);
  expect((await requested(id)).at(-1)).toEqual({ [copies.web!.id]: b });

  ok(await tell(hook, { action: 'closed', head: b, at: 2 }), 202);
  expect(await settled(admin)).toMatchObject([{ outcome: 'REMOVED' }]);
  await expect.poll(async () => (await admin.get(`/environment/${id}`)).status).toBe(404);
  expect((await environmentsOf(admin)).map(({ name }) => name)).toEqual(['dev']);
  expect(await servicesOf(id)).toEqual({});
});
