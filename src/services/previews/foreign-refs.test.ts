import { expect, test } from 'vitest';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import { commit } from '#services/pushes/pushes.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();
const { webhookOf, sourceOf, tell, worker, settled, environmentsOf } = usePreviews(app);

test('a service that has a ref of strangers is shown in no preview, whatever a branch is called', async () => {
  const admin = await app.organization();
  const ref = 'refs/pull/9/head';
  const git_repository = { url: 'https://git.invalid/acme/shop.git', branch: ref };
  await sourceOf(admin, { auto_deploy: false, git_repository });
  const hook = await webhookOf(admin);
  worker();
  ok(await tell(hook, { head: commit('a'), base: ref }), 202);
  expect(await settled(admin)).toEqual([]);
  expect((await environmentsOf(admin)).map(({ name }) => name)).toEqual(['dev']);
});
