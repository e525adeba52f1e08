import { expect, test } from 'vitest';
import { useApp } from '#test/harness/app.ts';
import { bodyOfPush, commit, headersOf, usePushes } from '#services/pushes/pushes.fixture.ts';

const app = useApp();
const { environmentOf, applicationIn, webhookOf, call, push, worker, applied, deployments, requested } = usePushes(app);

const [a, b] = [commit('a'), commit('b')];

test.each(['GITHUB', 'GITEA'] as const)(
  'a push that %s tells of deploys the services that follow its branch',
  async (sender) => {
    const admin = await app.organization();
    const environment = await environmentOf(admin);
    const web = await applicationIn(admin, environment);
    const api = await applicationIn(admin, environment);
    await applicationIn(admin, environment, {
      git_repository: { url: 'https://git.invalid/acme/shop.git', branch: 'next' },
    });
    const idle = await applicationIn(admin, environment, { auto_deploy: false });
    const hook = await webhookOf(admin);
    worker();
    const body = bodyOfPush({ before: a, after: b });
    expect((await call(hook, body, headersOf(sender, body))).status).toBe(202);
    await applied(admin);
    expect(await requested(environment)).toEqual([{ [web]: b, [api]: b }]);
    expect(await deployments(environment)).toMatchObject([
      { origin: 'GIT', requested_by_name: 'Ada', automatic: true, whole_environment: false },
    ]);
    const { newest_commit } = await app.db
      .selectFrom('service')
      .select('newest_commit')
      .where('id', '=', idle)
      .executeTakeFirstOrThrow();
    expect(newest_commit).toBe(b);
  },
);

test('a push joins the deployment of the push that waits, with the newest commit', async () => {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  const web = await applicationIn(admin, environment);
  const hook = await webhookOf(admin);
  worker();
  await push(hook, { after: a });
  await push(hook, { before: a, after: b });
  await applied(admin);
  expect(await requested(environment)).toEqual([{ [web]: b }]);
});
