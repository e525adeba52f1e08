import { afterAll, describe, expect, test } from 'vitest';
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

interface Plan {
  action: string;
  stages: {
    id: string;
    name: string;
    services: { id: string; steps: string[]; reason: string; changes: any; rollout: string }[];
  }[];
}
const planOf = async (admin: Actor, url: string, query = ''): Promise<Plan> =>
  ok(await admin.get(`${url}/deploymentPlan${query}`), 200);
const only = (plan: Plan) => plan.stages[0]!.services[0]!;

/** Returns the plan that the last request stored and the steps that its deployment made. */
async function carriedOut(environmentId: string) {
  const { id, plan } = await app.db
    .selectFrom('deployment')
    .select(['id', 'plan'])
    .where('environment_id', '=', environmentId)
    .orderBy('number', 'desc')
    .executeTakeFirstOrThrow();
  const steps = await app.db
    .selectFrom('deployment_step')
    .select(['service_id', 'name', 'status'])
    .where('deployment_id', '=', id)
    .orderBy('position')
    .execute();
  return { plan, steps };
}

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
    ok(await admin.post(`${url}/deploy?wait=20`), 200);
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

  test('of a service that is there shows what a new one brings, of a new one none of the built-in variables', async () => {
    const admin = await app.organization();
    const { environment, application, git_repository, url } = await make(admin);
    ok(await admin.post(`${url}/deploy?wait=20`), 200);
    const body = exampleBody({ git_repository, name: 'second', ports: [] });
    const second = ok(await admin.post(`/environment/${environment.id}/application`, body), 201);
    ok(await admin.post(`/application/${second.id}/environmentVariable`, { key: 'OWN', value: 'x' }), 201);
    const services = (await planOf(admin, `/environment/${environment.id}`)).stages.flatMap((stage) => stage.services);
    const keysOf = (id: string) =>
      services.find((service) => service.id === id)!.changes.variables.map((one: any) => `${one.change} ${one.key}`);
    const key = `QUARTERDECK_APPLICATION_Z${second.id.slice(0, 8).toUpperCase()}_HOST_INTERNAL`;
    expect(keysOf(application.id)).toEqual([`ADDED ${key}`]);
    expect(keysOf(second.id)).toEqual(['ADDED OWN']);
  });

  test.each(['DEPLOY', 'REDEPLOY', 'ROLLBACK', 'RESTART', 'STOP', 'UNINSTALL', 'DELETE'])(
    'is what a %s of the environment then does',
    async (action) => {
      const admin = await app.organization();
      const { environment, repository, git_repository } = await make(admin);
      const url = `/environment/${environment.id}`;
      const stages = ok(await admin.get(`${url}/deploymentStage`), 200).results;
      const second = ok(await admin.post(`${url}/application`, exampleBody({ git_repository, name: 'second' })), 201);
      ok(await admin.put(`/deploymentStage/${stages[0].id}/service/${second.id}`), 200);
      const { last_deployment_id } = ok(await admin.post(`${url}/deploy?wait=20`), 200);
      repository.commit({ more: 'x' });
      if (action === 'ROLLBACK') ok(await admin.post(`${url}/deploy?wait=20`), 200);
      const query = action === 'ROLLBACK' ? `&executionId=${last_deployment_id}` : '';
      const said = await planOf(admin, url, `?action=${action}${query}`);
      switch (action) {
        case 'DELETE':
          for (const service of said.stages.flatMap((stage) => stage.services))
            ok(await admin.delete(`/application/${service.id}`), 204);
          await expect
            .poll(async () => ok(await admin.get(`${url}/application`), 200).results, { timeout: 10_000 })
            .toEqual([]);
          expect(said.stages.map((stage) => stage.services.map((service) => service.steps))).toEqual([
            [['DEPLOYMENT']],
            [['DEPLOYMENT']],
          ]);
          return;
        case 'ROLLBACK':
          ok(await admin.post(`${url}/rollback?wait=20`, { execution_id: last_deployment_id }), 200);
          break;
        case 'RESTART': {
          const ids = said.stages.flatMap((stage) => stage.services.map((service) => service.id));
          ok(await admin.post(`${url}/service/restart-service?wait=20`, { application_ids: ids }), 200);
          break;
        }
        default:
          ok(await admin.post(`${url}/${action.toLowerCase()}?wait=20`), 200);
      }
      const { plan, steps } = await carriedOut(environment.id);
      const shape = (stages: { name: string; services: any[] }[]) =>
        stages.map(({ name, services }) => ({
          name,
          services: services.map(({ name: service, steps: planned, reason, rollout }) => [
            service,
            planned,
            reason,
            rollout,
          ]),
        }));
      expect(shape(said.stages)).toEqual(shape(plan.stages));
      for (const service of said.stages.flatMap((stage) => stage.services))
        expect(steps.filter((step) => step.service_id === service.id).map((step) => [step.name, step.status])).toEqual(
          service.steps.map((name) => [name, 'SUCCESS']),
        );
    },
  );

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
