import { describe, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
const engine = useEngine(app);

describe('a deployment', () => {
  test('is carried out step by step, and its state, release and facts are those of its end', async () => {
    const admin = await app.organization();
    const { application, environment } = await makeExample(admin);
    const status = ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
    expect(status).toMatchObject({
      state: 'DEPLOYED',
      status: 'RUNNING',
      service_deployment_status: 'UP_TO_DATE',
      status_details: { action: 'DEPLOY', status: 'SUCCESS' },
    });
    expect(
      status.steps.details.map((step: { step_name: string; status: string }) => [step.step_name, step.status]),
    ).toEqual([
      ['GIT_CLONE', 'SUCCESS'],
      ['BUILD_QUEUEING', 'SUCCESS'],
      ['BUILD', 'SUCCESS'],
      ['DEPLOYMENT', 'SUCCESS'],
    ]);
    expect(ok(await admin.get(`/environment/${environment.id}/status`), 200)).toMatchObject({
      state: 'DEPLOYED',
      deployment_status: 'UP_TO_DATE',
      last_deployment_state: 'DEPLOYED',
    });
    const { git_repository } = ok(await admin.get(`/application/${application.id}`), 200);
    expect(git_repository.deployed_commit_id).toMatch(/^[0-9a-f]{40}$/);
    expect(engine.router.upstreams(`app-z${application.id.slice(0, 8)}.localhost`)).toHaveLength(1);
  });

  test('of an unchanged commit builds nothing, and a changed configuration shows OUT_OF_DATE until it is deployed', async () => {
    const admin = await app.organization();
    const { application } = await makeExample(admin);
    ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
    ok(await admin.put(`/application/${application.id}`, exampleBody({ cpu: 700 })), 200);
    expect(ok(await admin.get(`/application/${application.id}/status`), 200).service_deployment_status).toBe(
      'OUT_OF_DATE',
    );
    const again = ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
    expect(again).toMatchObject({ state: 'DEPLOYED', service_deployment_status: 'UP_TO_DATE' });
    expect(again.steps.details.map((step: { step_name: string }) => step.step_name)).toEqual(['DEPLOYMENT']);
  });

  test('is stopped, restarted and torn down without a trace', async () => {
    const admin = await app.organization();
    const { application, project } = await makeExample(admin);
    ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
    expect(ok(await admin.post(`/application/${application.id}/restart-service?wait=40`), 200)).toMatchObject({
      state: 'RESTARTED',
      status: 'RUNNING',
    });
    expect(ok(await admin.post(`/application/${application.id}/stop?wait=40`), 200)).toMatchObject({
      state: 'STOPPED',
      status: 'STOPPED',
    });
    ok(await admin.post(`/application/${application.id}/restart-service`), 409);
    ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
    expect(ok(await admin.post(`/application/${application.id}/uninstall?wait=40`), 200)).toMatchObject({
      state: 'DELETED',
      service_deployment_status: 'NEVER_DEPLOYED',
    });
    ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
    ok(await admin.delete(`/project/${project.id}`), 204);
    await expect.poll(async () => (await admin.get(`/project/${project.id}`)).status).toBe(404);
    for (const table of ['environment', 'service', 'deployment', 'release', 'variable'] as const)
      expect(
        await app.db.selectFrom(table).select('id').where('organization_id', '=', admin.organizationId).execute(),
        table,
      ).toEqual([]);
    expect(engine.router.upstreams(`app-z${application.id.slice(0, 8)}.localhost`)).toEqual([]);
  });

  test('that fails says why, and later stages are cancelled', async () => {
    const admin = await app.organization();
    const { application, environment } = await makeExample(admin);
    const stages = ok(await admin.get(`/environment/${environment.id}/deploymentStage`), 200).results;
    const broken = ok(
      await admin.post(
        `/environment/${environment.id}/application`,
        exampleBody({ name: 'broken', dockerfile_path: 'nowhere/Dockerfile' }),
      ),
      201,
    );
    ok(await admin.put(`/deploymentStage/${stages[0].id}/service/${broken.id}`), 200);
    const status = ok(await admin.post(`/environment/${environment.id}/deploy?wait=40`), 200);
    expect(status).toMatchObject({
      state: 'DEPLOYMENT_ERROR',
      status: 'ERROR',
      last_deployment_state: 'DEPLOYMENT_ERROR',
    });
    expect(ok(await admin.get(`/application/${broken.id}/status`), 200)).toMatchObject({
      state: 'BUILD_ERROR',
      status: 'ERROR',
    });
    expect(ok(await admin.get(`/application/${application.id}/status`), 200).state).toBe('CANCELED');
  });

  test('of a branch that is not there ends in an error that says so', async () => {
    const admin = await app.organization();
    const { application } = await makeExample(admin, {
      git_repository: { url: exampleBody().git_repository.url, branch: 'no-such-branch' },
    });
    expect(ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200).state).toBe('DEPLOYMENT_ERROR');
    const row = await app.db
      .selectFrom('deployment_service')
      .select('error')
      .where('service_id', '=', application.id)
      .executeTakeFirstOrThrow();
    expect(row.error).toContain('no branch or tag no-such-branch');
  });

  test('writes one event at its request and one at its end, and wakes webhooks through the outbox', async () => {
    const admin = await app.organization();
    const { application } = await makeExample(admin);
    ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
    const events = await app.db
      .selectFrom('audit_event')
      .select(['event_type', 'triggered_by'])
      .where('target_id', '=', application.id)
      .orderBy('id')
      .execute();
    expect(events.map((event) => event.event_type)).toEqual(['CREATE', 'TRIGGER_DEPLOY', 'DEPLOY_QUEUED', 'DEPLOYED']);
    const told = await app.db
      .selectFrom('outbox')
      .select('payload')
      .where('organization_id', '=', admin.organizationId)
      .orderBy('id')
      .execute();
    expect(told.map((row) => row.payload.type)).toEqual(['DEPLOYMENT_STARTED', 'DEPLOYMENT_SUCCESSFUL']);
  });
});

test('who waits for a request waits for theirs, and not for the one that runs before it', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  engine.runtime.faults.delayMs = { submit: 1_000 };
  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  const stopped = ok(await admin.post(`/application/${application.id}/stop?wait=40`), 200);
  engine.runtime.faults.delayMs = {};
  expect(stopped).toMatchObject({ state: 'STOPPED' });
  expect(stopped).not.toHaveProperty('requested');
});

test('a service whose cluster has not answered for long is UNAVAILABLE, until it answers again', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
  const stateAfter = async (ago: string) => {
    await sql`update cluster set reached_at = now() - ${ago}::interval where organization_id = ${admin.organizationId}`.execute(
      app.db,
    );
    return ok(await admin.get(`/application/${application.id}/status`), 200).state;
  };
  expect(await stateAfter('1 hour')).toBe('UNAVAILABLE');
  expect(await stateAfter('1 minute')).toBe('DEPLOYED');
});
