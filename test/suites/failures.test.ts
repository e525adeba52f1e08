import { afterAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

/** Failure of a single service: it affects no other service, and every report names the service, the reason and the next step. */
const repositories = makeRepositoryRoot();
afterAll(() => repositories.remove());
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: `${repositories.folder}:/` });
const engine = useEngine(app);

const MISSING = 'no-such-branch';

const make = async (admin: Actor, environment: string, body: object = {}) =>
  ok(await admin.post(`/environment/${environment}/application`, exampleBody({ name: newId(), ...body })), 201) as {
    id: string;
    name: string;
  };

const statusOf = async (admin: Actor, id: string) => ok(await admin.get(`/application/${id}/status`), 200);

/** Creates an environment with a healthy, running application, and an application in an earlier stage whose branch does not exist. */
async function makeMixed(admin: Actor) {
  const { environment, application: healthy } = await makeExample(admin);
  ok(await admin.post(`/environment/${environment.id}/deploy?wait=40`), 200);
  const repository = repositories.make();
  repository.commit({ Dockerfile: 'FROM scratch' });
  const broken = await make(admin, environment.id, { git_repository: { url: repository.url, branch: MISSING } });
  const [first] = ok(await admin.get(`/environment/${environment.id}/deploymentStage`), 200).results;
  ok(await admin.put(`/deploymentStage/${first.id}/service/${broken.id}`), 200);
  return { environment: environment.id as string, healthy, broken };
}

describe('a service whose source is not there', () => {
  test('fails alone with its name and the reason, and the environment deploys the rest', async () => {
    const admin = await app.organization();
    const { environment, healthy, broken } = await makeMixed(admin);
    const before = engine.runtime.specOf(healthy.id)!.identity.generation;
    const status = ok(await admin.post(`/environment/${environment}/deploy?wait=40`), 200);
    const log_url = `/environment/${environment}/logs?version=${status.last_deployment_id}`;
    const error = {
      code: 'SOURCE_UNAVAILABLE',
      step: null,
      message: expect.stringMatching(`^${broken.name}: .*${MISSING}`),
      log_url,
    };
    expect(status).toMatchObject({
      state: 'DEPLOYMENT_ERROR',
      error: { ...error, service: { id: broken.id, name: broken.name } },
    });
    expect(await statusOf(admin, broken.id)).toMatchObject({ state: 'DEPLOYMENT_ERROR', error });
    const running = await statusOf(admin, healthy.id);
    expect(running).toMatchObject({ state: 'DEPLOYED', service_deployment_status: 'UP_TO_DATE' });
    expect(running).not.toHaveProperty('error');
    expect(engine.runtime.specOf(healthy.id)!.identity.generation).toBeGreaterThan(before);
    const lines = ok(await admin.get(log_url), 200).filter((line: any) => line.type === 'ERROR');
    const details = { transmitter: { id: broken.id, name: broken.name } };
    const fix = { safe_message: expect.stringMatching(/^BRANCH_MISSING: .* or push the branch\.$/) };
    expect(lines).toMatchObject([{ details }, { details, message: fix }]);
  });

  test('is told with code, step, message and log in history, event and webhook', async () => {
    const admin = await app.organization();
    const { environment, broken } = await makeMixed(admin);
    const url = { target_url: 'https://hooks.example.com/a', events: ['DEPLOYMENT_FAILED'], enabled: true };
    ok(await admin.post(`/organization/${admin.organizationId}/webhook`, url), 201);
    ok(await admin.post(`/environment/${environment}/deploy?wait=40`), 200);
    const error = { code: 'SOURCE_UNAVAILABLE', step: null, message: expect.stringContaining(MISSING) };
    const [execution] = ok(await admin.get(`/environment/${environment}/deploymentHistoryV2`), 200).results;
    const services = execution.stages.flatMap((stage: any) => stage.services);
    const told = services.find((one: any) => one.identifier.service_id === broken.id);
    expect(told.error).toMatchObject({ ...error, log_url: expect.stringContaining(execution.identifier.execution_id) });
    expect(services.filter((one: any) => one.error)).toHaveLength(1);
    const [own] = ok(await admin.get(`/application/${broken.id}/deploymentHistoryV2`), 200).results;
    expect(own.error).toMatchObject(error);
    const [v1] = ok(await admin.get(`/application/${broken.id}/deploymentHistory`), 200).results;
    expect(v1.error).toMatchObject(error);
    const [whole] = ok(await admin.get(`/environment/${environment}/deploymentHistory`), 200).results;
    expect(whole.applications.find((one: any) => one.id === broken.id).error).toMatchObject(error);
    const event = await app.db
      .selectFrom('audit_event')
      .select('change')
      .where('organization_id', '=', admin.organizationId)
      .where('event_type', '=', 'DEPLOY_FAILED')
      .executeTakeFirstOrThrow();
    expect(JSON.stringify(event.change)).toContain('SOURCE_UNAVAILABLE');
    const payloads = await app.db
      .selectFrom('outbox')
      .select('payload')
      .where('organization_id', '=', admin.organizationId)
      .execute();
    const failure = payloads.map((row: any) => row.payload).find((one) => one.type === 'DEPLOYMENT_FAILURE');
    expect(failure).toMatchObject({ service: { id: broken.id }, error });
    expect(failure.error.cause).toEqual(told.error.cause);
    expect(failure.error.cause).toMatchObject({ code: 'BRANCH_MISSING' });
  });
});

describe('a service that its cluster cannot run', () => {
  test('fails alone when its environment is deployed, and is refused at once when it is deployed by itself', async () => {
    const admin = await app.organization();
    const { environment, application: healthy } = await makeExample(admin);
    const chart = { git_repository: { url: 'https://git.invalid/acme/charts.git', branch: 'main' } };
    const helm = ok(await admin.post(`/environment/${environment.id}/helm`, { name: 'chart', source: chart }), 201);
    // The engine of the test serves every cluster; the name alone decides on the reported capabilities.
    await app.db.updateTable('cluster').set({ runtime: 'docker' }).where('organization_id', '=', admin.organizationId).execute(); // prettier-ignore
    const alone = ok(await admin.post(`/helm/${helm.id}/deploy`), 400);
    expect(alone.message).toContain("can't run this: chart runs on Kubernetes only");
    const status = ok(await admin.post(`/environment/${environment.id}/deploy?wait=40`), 200);
    expect(status.error).toMatchObject({ code: 'CLUSTER_UNABLE', service: { id: helm.id, name: 'chart' } });
    expect(await statusOf(admin, healthy.id)).toMatchObject({ state: 'DEPLOYED' });
    expect(ok(await admin.get(`/helm/${helm.id}/status`), 200)).toMatchObject({
      state: 'DEPLOYMENT_ERROR',
      error: { code: 'CLUSTER_UNABLE', message: expect.stringContaining('chart runs on Kubernetes only') },
    });
    const selected = { applications: [{ application_id: healthy.id }], helms: [{ id: helm.id }] };
    expect(ok(await admin.post(`/environment/${environment.id}/service/deploy?wait=40`, selected), 200).state).toBe(
      'DEPLOYMENT_ERROR',
    );
  });
});

describe('an instance that does not get ready', () => {
  test('leaves its last lines, without secrets, in the log of its service, whose status names the step', async () => {
    const admin = await app.organization();
    const { application } = await makeExample(admin);
    const url = `/application/${application.id}`;
    ok(await admin.post(`${url}/environmentVariable`, { key: 'FAIL_START', value: '{{PASSWORD}}' }), 201);
    ok(await admin.post(`${url}/secret`, { key: 'PASSWORD', value: 'very-secret-value' }), 201);
    const status = ok(await admin.post(`${url}/deploy?wait=40`), 200);
    expect(status).toMatchObject({ state: 'DEPLOYMENT_ERROR', error: { code: 'NOT_READY', step: 'DEPLOYMENT' } });
    const { results } = ok(await admin.get(`${url}/log`), 200);
    expect(results).toMatchObject([{ message: expect.stringContaining('cannot start: FAIL_START'), pod_name: expect.any(String) }]); // prettier-ignore
    expect(JSON.stringify([results, status])).not.toContain('very-secret-value');
    ok(await (await app.organization()).get(`${url}/log`), 404);
  });

  test('of a failed build and of a wrong variable say so by their codes', async () => {
    const admin = await app.organization();
    const { environment } = await makeExample(admin);
    const missing = await make(admin, environment.id, { dockerfile_path: 'nowhere/Dockerfile' });
    const build = ok(await admin.post(`/application/${missing.id}/deploy?wait=40`), 200);
    expect(build.error).toMatchObject({
      code: 'BUILD_FAILED',
      step: 'BUILD',
      message: expect.stringMatching(/^No file "nowhere\/Dockerfile" at \/ of branch HEAD of /),
      cause: { code: 'BUILD_PATH_MISSING', lines: [], fix: expect.stringMatching(/^Correct the Dockerfile path/) },
    });
    const looped = await make(admin, environment.id);
    ok(await admin.post(`/application/${looped.id}/environmentVariable`, { key: 'LOOP', value: '{{LOOP}}' }), 201);
    const failed = ok(await admin.post(`/application/${looped.id}/deploy?wait=40`), 200);
    expect(failed.error).toMatchObject({
      code: 'VARIABLES_INVALID',
      message: expect.stringContaining('LOOP'),
      cause: { code: 'VARIABLE_CYCLE' },
    });
  });
});

test('the log of an environment that is asked to go on says where new lines are sent', async () => {
  const admin = await app.organization();
  const { environment } = await makeExample(admin);
  const url = `/environment/${environment.id}/logs`;
  expect(ok(await admin.get(`${url}?follow=true`), 400).message).toContain('/eventStream');
  ok(await admin.get(`${url}?follow=false`), 200);
});
