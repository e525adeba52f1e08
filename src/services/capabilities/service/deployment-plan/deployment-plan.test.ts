import { afterAll, describe, expect, test } from 'vitest';
import { planOf, type Plan } from '#services/capabilities/service/deployment-plan/deployment-plan.fixture.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const repositories = makeRepositoryRoot();
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder });
useEngine(app);
afterAll(() => repositories.remove());

const DOCKERFILE = { Dockerfile: 'FROM scratch\nCMD ["/hello"]\n' };

async function make(admin: Actor) {
  const repository = repositories.make();
  const first = repository.commit(DOCKERFILE);
  const git_repository = { url: repository.url, branch: 'main' };
  const example = await makeExample(admin, { git_repository });
  return { ...example, repository, first, git_repository, url: `/application/${example.application.id}` };
}

const only = (plan: Plan) => plan.stages[0]!.services[0]!;

describe('the plan of a deployment', () => {
  test('says what would be done and why, and changes nothing', async () => {
    const admin = await app.organization();
    const { environment, application, url } = await make(admin);
    const plan = await planOf(admin, url);
    expect(plan).toMatchObject({ environment_id: environment.id, action: 'DEPLOY' });
    expect(only(plan)).toMatchObject({
      id: application.id,
      service_type: 'APPLICATION',
      steps: ['GIT_CLONE', 'BUILD_QUEUEING', 'BUILD', 'DEPLOYMENT'],
      rollout: 'ROLLING',
      reason: 'it was never built',
      changes: { settings: [] },
    });
    expect(
      await app.db.selectFrom('deployment').select('id').where('environment_id', '=', environment.id).execute(),
    ).toEqual([]);
    expect(ok(await admin.get(`${url}/status`), 200).state).toBe('READY');
  });

  test('shows commit, settings and variables by name with their origin, and no value of a secret', async () => {
    const admin = await app.organization();
    const { project, application, repository, git_repository, url, first } = await make(admin);
    ok(await admin.post(`/project/${project.id}/environmentVariable`, { key: 'SHARED', value: 'one' }), 201);
    const gone = ok(await admin.post(`${url}/environmentVariable`, { key: 'GONE', value: 'x' }), 201);
    const secret = ok(await admin.post(`${url}/secret`, { key: 'PASSWORD', value: 'canary-first' }), 201);
    ok(await admin.post(`${url}/deploy?wait=40`), 200);
    expect(only(await planOf(admin, url)).changes).toEqual({ settings: [], variables: [] });
    expect(only(await planOf(admin, url)).steps).toEqual(['DEPLOYMENT']);

    const second = repository.commit({ more: 'x' }, { message: 'more of it' });
    ok(await admin.put(url, exampleBody({ git_repository, cpu: 750, name: application.name })), 200);
    ok(await admin.post(`${url}/environmentVariable`, { key: 'SHARED', value: 'two' }), 201);
    ok(await admin.delete(`${url}/environmentVariable/${gone.id}`), 204);
    ok(await admin.put(`${url}/secret/${secret.id}`, { key: 'PASSWORD', value: 'canary-second' }), 200);
    const plan = await planOf(admin, url);
    const { changes, reason } = only(plan);
    expect(reason).toContain('the commit changed');
    expect(changes.commit).toMatchObject({
      from: { git_commit_id: first },
      to: { git_commit_id: second, message: 'more of it' },
    });
    expect(changes.settings).toEqual([{ path: 'cpu', from: 500, to: 750 }]);
    const secretOf = { is_secret: true, scope: 'APPLICATION', variable_type: 'VALUE' };
    expect(changes.variables).toEqual([
      { key: 'GONE', change: 'REMOVED', is_secret: false, scope: 'APPLICATION', variable_type: 'VALUE', from: 'x' },
      { key: 'PASSWORD', change: 'CHANGED', ...secretOf },
      {
        key: 'SHARED',
        change: 'CHANGED',
        is_secret: false,
        scope: 'APPLICATION',
        variable_type: 'VALUE',
        from: 'one',
        to: 'two',
      },
    ]);
    expect(JSON.stringify(plan)).not.toContain('canary');
    expect(only(await planOf(admin, url, '?action=REDEPLOY')).changes.commit).toBeUndefined();
  });

  test('says why it cannot be made', async () => {
    const admin = await app.organization();
    const { url, environment } = await make(admin);
    ok(await admin.get(`${url}/deploymentPlan?action=ROLLBACK`), 400);
    ok(await admin.get(`${url}/deploymentPlan?action=DEPLOY&executionId=${environment.id}-1`), 400);
    ok(await admin.get(`${url}/deploymentPlan?action=RESTART`), 409);
    ok(await admin.get(`${url}/deploymentPlan?action=DANCE`), 400);
    const broken = ok(
      await admin.post(
        `/environment/${environment.id}/application`,
        exampleBody({ name: 'broken', git_repository: { url: repositories.make().url, branch: 'nowhere' } }),
      ),
      201,
    );
    ok(await admin.get(`/application/${broken.id}/deploymentPlan`), 502);
    const stranger = await app.organization();
    ok(await stranger.get(`${url}/deploymentPlan`), 404);
  });
});
