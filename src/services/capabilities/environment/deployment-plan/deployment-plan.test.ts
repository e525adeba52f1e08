import { afterAll, describe, expect, test } from 'vitest';
import { planOf } from '#services/capabilities/service/deployment-plan/deployment-plan.fixture.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const repositories = makeRepositoryRoot();
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder });
useEngine(app);
afterAll(() => repositories.remove());

async function make(admin: Actor) {
  const repository = repositories.make();
  repository.commit({ Dockerfile: 'FROM scratch\nCMD ["/hello"]\n' });
  const git_repository = { url: repository.url, branch: 'main' };
  return { ...(await makeExample(admin, { git_repository })), repository, git_repository };
}

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

describe('the plan of an environment', () => {
  test('of a service that is there shows what a new one brings, of a new one none of the built-in variables', async () => {
    const admin = await app.organization();
    const { environment, application, git_repository } = await make(admin);
    ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
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
      const { last_deployment_id } = ok(await admin.post(`${url}/deploy?wait=40`), 200);
      repository.commit({ more: 'x' });
      if (action === 'ROLLBACK') ok(await admin.post(`${url}/deploy?wait=40`), 200);
      const query = action === 'ROLLBACK' ? `&executionId=${last_deployment_id}` : '';
      const said = await planOf(admin, url, `?action=${action}${query}`);
      switch (action) {
        case 'DELETE':
          for (const service of said.stages.flatMap((stage) => stage.services))
            ok(await admin.delete(`/application/${service.id}`), 204);
          await expect.poll(async () => ok(await admin.get(`${url}/application`), 200).results).toEqual([]);
          expect(said.stages.map((stage) => stage.services.map((service) => service.steps))).toEqual([
            [['DEPLOYMENT']],
            [['DEPLOYMENT']],
          ]);
          return;
        case 'ROLLBACK':
          ok(await admin.post(`${url}/rollback?wait=40`, { execution_id: last_deployment_id }), 200);
          break;
        case 'RESTART': {
          const ids = said.stages.flatMap((stage) => stage.services.map((service) => service.id));
          ok(await admin.post(`${url}/service/restart-service?wait=40`, { application_ids: ids }), 200);
          break;
        }
        default:
          ok(await admin.post(`${url}/${action.toLowerCase()}?wait=40`), 200);
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
});
