import { describe, expect, test } from 'vitest';
import { makeApplication } from '#services/capabilities/service/actions/actions.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();

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
});
