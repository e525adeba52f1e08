import { afterAll, describe, expect, test } from 'vitest';
import { json } from '#platform/database/json.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const repositories = makeRepositoryRoot();
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder });
const engine = useEngine(app);
afterAll(() => repositories.remove());

const DOCKERFILE = { Dockerfile: 'FROM scratch\nCMD ["/hello"]\n' };

/** An application of a repository of its own. */
async function make(admin: Actor) {
  const repository = repositories.make();
  const first = repository.commit(DOCKERFILE);
  const git_repository = { url: repository.url, branch: 'main' };
  const example = await makeExample(admin, { git_repository });
  return { ...example, repository, first, git_repository, url: `/application/${example.application.id}` };
}

const deploy = async (admin: Actor, url: string, body?: object) => {
  const status = ok(await admin.post(`${url}/deploy?wait=40`, body), 200);
  expect(status.state).toBe('DEPLOYED');
  return status as { execution_id: string; last_deployment_id: string };
};

/** Returns the spec that the runtime was last asked to run for a service. */
const applied = (serviceId: string) => engine.runtime.specOf(serviceId)!;

describe('going back to an earlier execution', () => {
  test('deploys its image, configuration and variables as they were, secrets in their version, and leaves the stored ones', async () => {
    const admin = await app.organization();
    const { application, repository, git_repository, url } = await make(admin);
    const variable = ok(await admin.post(`${url}/environmentVariable`, { key: 'GREETING', value: 'hello' }), 201);
    const secret = ok(await admin.post(`${url}/secret`, { key: 'PASSWORD', value: 'first-secret' }), 201);
    const first = await deploy(admin, url);
    const before = applied(application.id);

    repository.commit({ Dockerfile: 'FROM scratch\nCMD ["/other"]\n' });
    ok(await admin.put(url, exampleBody({ git_repository, cpu: 750, name: application.name })), 200);
    ok(await admin.put(`${url}/environmentVariable/${variable.id}`, { key: 'GREETING', value: 'bye' }), 200);
    ok(await admin.put(`${url}/secret/${secret.id}`, { key: 'PASSWORD', value: 'second-secret' }), 200);
    await deploy(admin, url);
    expect(applied(application.id)).toMatchObject({
      resources: { cpuMilli: 750 },
      environment: { GREETING: 'bye', PASSWORD: 'second-secret' },
    });

    const back = ok(await admin.post(`${url}/rollback?wait=40`, { execution_id: first.execution_id }), 200);
    expect(back).toMatchObject({ state: 'DEPLOYED', service_deployment_status: 'OUT_OF_DATE' });
    expect(back.steps.details.map((step: { step_name: string }) => step.step_name)).toEqual(['DEPLOYMENT']);
    const again = applied(application.id);
    expect(again.identity.generation).toBeGreaterThan(before.identity.generation);
    expect({ ...again, identity: before.identity }).toEqual(before);
    expect(ok(await admin.get(url), 200).cpu).toBe(750);
    // The present configuration is what the next deploy takes.
    await deploy(admin, url);
    expect(applied(application.id).environment).toMatchObject({ GREETING: 'bye', PASSWORD: 'second-secret' });
  });

  test('shows OUT_OF_DATE where only the commit is an older one, also when repeated, until the newer one is deployed', async () => {
    const admin = await app.organization();
    const { url, repository, environment, first: older } = await make(admin);
    const first = await deploy(admin, url);
    const newer = repository.commit({ Dockerfile: 'FROM scratch\nCMD ["/other"]\n' });
    const second = await deploy(admin, url);
    const shown = async () => {
      const [service, whole] = [
        await admin.get(`${url}/status`),
        await admin.get(`/environment/${environment.id}/status`),
      ];
      const { git_repository } = ok(await admin.get(url), 200);
      return [
        ok(service, 200).service_deployment_status,
        ok(whole, 200).deployment_status,
        git_repository.deployed_commit_id,
      ];
    };
    const back = ok(await admin.post(`${url}/rollback?wait=40`, { execution_id: first.execution_id }), 200);
    expect(back.service_deployment_status).toBe('OUT_OF_DATE');
    ok(await admin.post(`${url}/redeploy?wait=40`), 200);
    expect(await shown()).toEqual(['OUT_OF_DATE', 'OUT_OF_DATE', older]);
    ok(await admin.post(`${url}/rollback?wait=40`, { execution_id: second.execution_id }), 200);
    expect(await shown()).toEqual(['UP_TO_DATE', 'UP_TO_DATE', newer]);
    ok(await admin.post(`${url}/rollback?wait=40`, { execution_id: first.execution_id }), 200);
    await deploy(admin, url);
    expect(await shown()).toEqual(['UP_TO_DATE', 'UP_TO_DATE', newer]);
    // A commit that somebody asks for is what they want, whichever it is.
    await deploy(admin, url, { git_commit_id: older });
    expect(await shown()).toEqual(['UP_TO_DATE', 'UP_TO_DATE', older]);
  });

  test('is built again of the same commit where the image is no longer kept', async () => {
    const admin = await app.organization();
    const { url, repository, application, first } = await make(admin);
    const { execution_id } = await deploy(admin, url);
    repository.commit({ Dockerfile: 'FROM scratch\nCMD ["/other"]\n' });
    await deploy(admin, url);
    await app.db
      .deleteFrom('release')
      .where('service_id', '=', application.id)
      .where('id', '!=', currentOf(application.id))
      .execute();
    const built = async () => {
      const back = ok(await admin.post(`${url}/rollback?wait=40`, { execution_id }), 200);
      expect(back.state).toBe('DEPLOYED');
      expect(ok(await admin.get(url), 200).git_repository.deployed_commit_id).toBe(first);
      return back.steps.details.map((step: { step_name: string }) => step.step_name);
    };
    expect(await built()).toEqual(['GIT_CLONE', 'BUILD_QUEUEING', 'BUILD', 'DEPLOYMENT']);
    ok(await admin.post(`${url}/uninstall?wait=40`), 200);
    expect(await built(), 'after the images went with an uninstall').toEqual([
      'GIT_CLONE',
      'BUILD_QUEUEING',
      'BUILD',
      'DEPLOYMENT',
    ]);
  });

  test('is refused where it never was, deployed nothing, failed, or its secrets are gone; and nothing is requested', async () => {
    const admin = await app.organization();
    const { url, environment, application, repository } = await make(admin);
    ok(await admin.post(`${url}/secret`, { key: 'PASSWORD', value: 'first-secret' }), 201);
    const { execution_id } = await deploy(admin, url);
    repository.commit({ Dockerfile: 'not a Dockerfile' });
    repository.git('rm', '--quiet', 'Dockerfile');
    repository.commit({ README: 'nothing to build' });
    const failed = ok(await admin.post(`${url}/deploy?wait=40`), 200);
    expect(failed.state).toBe('BUILD_ERROR');
    const stopped = ok(await admin.post(`${url}/stop?wait=40`), 200);
    const number = async () =>
      (
        await app.db
          .selectFrom('environment')
          .select('deployment_number')
          .where('id', '=', environment.id)
          .executeTakeFirstOrThrow()
      ).deployment_number;
    const before = await number();
    for (const execution of ['x', `${environment.id}-77`, `${application.id}-1`])
      expect(ok(await admin.post(`${url}/rollback`, { execution_id: execution }), 400).message).toContain(
        'execution_id',
      );
    ok(await admin.post(`${url}/rollback`, {}), 400);
    ok(await admin.post(`${url}/rollback`, { execution_id: stopped.execution_id }), 409);
    ok(await admin.post(`${url}/rollback`, { execution_id: failed.execution_id }), 409);
    ok(await admin.post(`/environment/${environment.id}/rollback`, { execution_id: failed.execution_id }), 409);
    const { id, snapshot } = await app.db
      .selectFrom('deployment')
      .select(['id', 'snapshot'])
      .where('environment_id', '=', environment.id)
      .where('number', '=', 1)
      .executeTakeFirstOrThrow();
    const setSnapshot = (to: object) =>
      app.db
        .updateTable('deployment')
        .set({ snapshot: json(to) })
        .where('id', '=', id)
        .execute();
    await setSnapshot({ ...snapshot, services: [], expired: true });
    expect(ok(await admin.post(`${url}/rollback`, { execution_id }), 409).message).toContain('no longer kept');
    await setSnapshot(snapshot);
    await app.db.deleteFrom('variable_secret_version').where('organization_id', '=', admin.organizationId).execute();
    expect(ok(await admin.post(`${url}/rollback`, { execution_id }), 409).message).toContain('PASSWORD');
    expect(await number()).toBe(before);
    const stranger = await app.organization();
    ok(await stranger.post(`${url}/rollback`, { execution_id }), 404);
  });
});

const currentOf = (serviceId: string) => app.db.selectFrom('service').select('release_id').where('id', '=', serviceId);
