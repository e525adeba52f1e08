import { describe, expect, test } from 'vitest';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

/** An application of the specification's example, in a new environment. */
async function makeApplication(admin: Actor) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
  const environment = ok(
    await admin.post(`/project/${project.id}/environment`, { name: 'e', mode: 'PRODUCTION' }),
    201,
  );
  const application = ok(
    await admin.post(`/environment/${environment.id}/application`, {
      name: 'backend',
      git_repository: { url: 'https://github.com/acme/backend.git', branch: 'main' },
      build_mode: 'DOCKER',
      dockerfile_path: 'Dockerfile',
      cpu: 500,
      memory: 512,
      min_running_instances: 1,
      max_running_instances: 3,
      ports: [{ internal_port: 3000, external_port: 443, protocol: 'HTTP', publicly_accessible: true }],
    }),
    201,
  );
  return { project, environment, application };
}

describe('an action on an application', () => {
  test('is queued with its state stored before the answer', async () => {
    const admin = await app.organization();
    const { application, environment } = await makeApplication(admin);
    expect(ok(await admin.get(`/application/${application.id}/status`), 200)).toMatchObject({
      state: 'READY',
      service_deployment_status: 'NEVER_DEPLOYED',
      status_details: { action: 'UNKNOWN', status: 'NEVER', sub_action: 'NONE' },
    });
    const status = ok(await admin.post(`/application/${application.id}/deploy`), 200);
    expect(status).toMatchObject({
      id: application.id,
      state: 'DEPLOYMENT_QUEUED',
      status: 'QUEUED',
      status_details: { action: 'DEPLOY', status: 'QUEUED', sub_action: 'NONE' },
      deployment_requests_count: 1,
    });
    expect(ok(await admin.get(`/application/${application.id}/status`), 200)).toEqual(status);
    expect(ok(await admin.get(`/environment/${environment.id}/status`), 200)).toMatchObject({
      state: 'DEPLOYMENT_QUEUED',
      deployment_request_id: status.deployment_request_id,
    });
    expect(ok(await admin.get(`/environment/${environment.id}/statuses`), 200).applications).toHaveLength(1);
    ok(await admin.get(`/environment/${environment.id}/statusesWithStages`), 200);
  });

  test('joins the last waiting request when it is the same, and stands behind it when it is another', async () => {
    const admin = await app.organization();
    const { application } = await makeApplication(admin);
    const first = ok(await admin.post(`/application/${application.id}/deploy`, {}), 200);
    const second = ok(await admin.post(`/application/${application.id}/deploy`, {}), 200);
    expect(second.deployment_request_id).toBe(first.deployment_request_id);
    const third = ok(await admin.post(`/application/${application.id}/stop`), 200);
    expect(third).toMatchObject({ deployment_requests_count: 2, state: 'DEPLOYMENT_QUEUED' });
  });

  test("that a person asks for makes the automatic one that waits, and that it joins, a person's", async () => {
    const admin = await app.organization();
    const { application } = await makeApplication(admin);
    const first = ok(await admin.post(`/application/${application.id}/deploy`, {}), 200);
    const id = first.deployment_request_id as string;
    // As what follows an image asks for it.
    await app.db.updateTable('deployment').set({ automatic: true }).where('id', '=', id).execute();
    const second = ok(await admin.post(`/application/${application.id}/deploy`, {}), 200);
    expect(second.deployment_request_id).toBe(id);
    const rows = await app.db
      .selectFrom('deployment')
      .select(['id', 'status', 'automatic'])
      .where('environment_id', '=', application.environment.id)
      .execute();
    expect(rows).toEqual([{ id, status: 'WAITING', automatic: false }]);
  });

  test('tells who triggered it and that it is queued', async () => {
    const admin = await app.organization();
    const { application } = await makeApplication(admin);
    ok(await admin.post(`/application/${application.id}/deploy`), 200);
    const events = await app.db
      .selectFrom('audit_event')
      .select('event_type')
      .where('target_id', '=', application.id)
      .orderBy('id')
      .execute();
    expect(events.map((event) => event.event_type)).toEqual(['CREATE', 'TRIGGER_DEPLOY', 'DEPLOY_QUEUED']);
  });

  test('is cancelled at once while it waits, and cancelling nothing is 409', async () => {
    const admin = await app.organization();
    const { application, environment } = await makeApplication(admin);
    expect((await admin.post(`/environment/${environment.id}/cancelDeployment`)).status).toBe(409);
    ok(await admin.post(`/application/${application.id}/deploy`), 200);
    expect(
      ok(await admin.post(`/environment/${environment.id}/cancelDeployment`, { force_cancel: false }), 200).state,
    ).toBe('CANCELED');
    expect(ok(await admin.get(`/application/${application.id}/status`), 200)).toMatchObject({
      state: 'CANCELED',
      status_details: { status: 'CANCELED' },
    });
  });

  test('restart of what does not run is 409, and a delete of what was never applied is gone at once', async () => {
    const admin = await app.organization();
    const { application } = await makeApplication(admin);
    expect((await admin.post(`/application/${application.id}/restart-service`)).body.message).toContain(
      'deploy it first',
    );
    ok(await admin.delete(`/application/${application.id}`), 204);
    ok(await admin.get(`/application/${application.id}`), 404);
  });

  test('takes DEPLOY, and a delete takes ADMIN', async () => {
    const admin = await app.organization();
    const { application, environment } = await makeApplication(admin);
    const [reader, deployer, writer] = [
      await admin.withScope('READ'),
      await admin.withScope('DEPLOY'),
      await admin.withScope('WRITE'),
    ];
    ok(await reader.post(`/application/${application.id}/deploy`), 403);
    ok(await deployer.post(`/application/${application.id}/deploy`), 200);
    ok(await writer.delete(`/application/${application.id}`), 403);
    ok(await writer.delete(`/environment/${environment.id}`), 403);
    ok(await writer.delete(`/project/${environment.project.id}`), 403);
    ok(await writer.post(`/environment/${environment.id}/service/delete`, { application_ids: [application.id] }), 403);
  });

  test('of an environment takes every service, and an empty one is accepted too', async () => {
    const admin = await app.organization();
    const { environment, application } = await makeApplication(admin);
    const status = ok(await admin.post(`/environment/${environment.id}/deploy`), 200);
    expect(status).toMatchObject({ id: environment.id, state: 'DEPLOYMENT_QUEUED' });
    expect(ok(await admin.get(`/application/${application.id}/status`), 200).deployment_request_id).toBe(
      status.deployment_request_id,
    );
    const empty = ok(await admin.post(`/project/${environment.project.id}/environment`, { name: 'empty' }), 201);
    ok(await admin.post(`/environment/${empty.id}/deploy`), 200);
  });

  test('deletes project, environment and what was never applied in them', async () => {
    const admin = await app.organization();
    const { project, environment } = await makeApplication(admin);
    ok(await admin.delete(`/project/${project.id}`), 204);
    ok(await admin.get(`/project/${project.id}`), 404);
    ok(await admin.get(`/environment/${environment.id}`), 404);
  });
});

test('the state of a request is told by its id, to those who may see its environment', async () => {
  const [admin, other] = [await app.organization(), await app.organization()];
  const { application, environment } = await makeApplication(admin);
  const { deployment_request_id: id } = ok(await admin.post(`/application/${application.id}/deploy`, {}), 200);
  const url = `/environment/deploymentStatus?deploymentRequestId=${id}`;
  const expected = { deployment_request_id: id, environment_id: environment.id, status: 'DEPLOYMENT_QUEUED' };
  expect(ok(await admin.get(url), 200)).toEqual(expected);
  expect(ok(await (await admin.withScope('READ')).get(`/api/v1${url}`), 200)).toEqual(expected);
  ok(await other.get(url), 404);
  ok(await admin.get('/environment/deploymentStatus'), 400);
  ok(await admin.get('/environment/deploymentStatus?deploymentRequestId=7'), 400);
});
