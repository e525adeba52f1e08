import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { inTransaction } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import type { DeploymentAction, Trigger } from '#deployments/model/states.ts';
import { moveServices } from '#deployments/queries.ts';
import { cancelAllWaiting, endInterrupted } from '#deployments/restored.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp();

/** The newest deployment of an environment as a worker left it that is gone: claimed, its services moved, a step begun. */
async function interrupted(admin: Actor, environmentId: string, triggers: Trigger[]) {
  const scope = { organizationId: admin.organizationId };
  const deployment = await app.db
    .updateTable('deployment')
    .set({ status: 'RUNNING', worker_id: 999, claim_token: newId(), lease_until: sql`now() + interval '1 hour'` })
    .where('environment_id', '=', environmentId)
    .where('status', '=', 'WAITING')
    .returning(['id', 'action'])
    .executeTakeFirstOrThrow();
  for (const trigger of triggers)
    await moveServices(app.db, scope, deployment.id, deployment.action as DeploymentAction, trigger).execute();
  const { service_id } = await app.db
    .selectFrom('deployment_service')
    .select('service_id')
    .where('deployment_id', '=', deployment.id)
    .executeTakeFirstOrThrow();
  await app.db
    .insertInto('deployment_step')
    .values({
      deployment_id: deployment.id,
      organization_id: admin.organizationId,
      service_id,
      position: 0,
      name: 'BUILD',
      status: 'STARTED',
      started_at: new Date(),
    })
    .execute();
  return deployment.id;
}

const end = () => inTransaction(app.context, (context) => endInterrupted(context, 'restored from a backup'));

const findDeployment = (id: string) =>
  app.db
    .selectFrom('deployment')
    .select(['status', 'outcome', 'error', 'worker_id', 'claim_token'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();

const findStep = (id: string) =>
  app.db
    .selectFrom('deployment_step')
    .select(['status', 'error', 'ended_at'])
    .where('deployment_id', '=', id)
    .executeTakeFirstOrThrow();

test('what was running ends in an error that says why, and its services skip nothing the next time', async () => {
  const admin = await app.organization();
  const { environment, application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  const id = await interrupted(admin, environment.id, ['start', 'build']);
  expect(await end()).toBe(1);
  expect(await findDeployment(id)).toEqual({
    status: 'ENDED',
    outcome: 'ERROR',
    error: 'restored from a backup',
    worker_id: null,
    claim_token: null,
  });
  expect(await findStep(id)).toEqual({
    status: 'ERROR',
    error: 'restored from a backup',
    ended_at: expect.any(Date),
  });
  expect(ok(await admin.get(`/application/${application.id}/status`), 200).state).toBe('BUILD_ERROR');
  const { dirty } = await app.db
    .selectFrom('service')
    .select('dirty')
    .where('id', '=', application.id)
    .executeTakeFirstOrThrow();
  expect(dirty).toBe(true);
  const events = ok(
    await admin.get(`/organization/${admin.organizationId}/events?eventType=DEPLOY_FAILED`),
    200,
  ).events;
  expect(events).toHaveLength(1);
  expect(events[0].target_id).toBe(application.id);
  expect(ok(await admin.post(`/application/${application.id}/deploy`), 200).state).toBe('DEPLOYMENT_QUEUED');
  expect(await end()).toBe(0);
});

test('what was being cancelled is cancelled, and what was being deleted is usable again', async () => {
  const admin = await app.organization();
  const [first, second] = [await makeExample(admin), await makeExample(admin)];
  ok(await admin.post(`/application/${first.application.id}/deploy`), 200);
  const cancelled = await interrupted(admin, first.environment.id, ['start', 'apply', 'cancel']);
  await app.db.updateTable('deployment').set({ cancel_requested_at: new Date() }).where('id', '=', cancelled).execute();
  // Something was applied once: without that a delete is done at once.
  await app.db.updateTable('service').set({ wanted: 'running' }).where('id', '=', second.application.id).execute();
  ok(await admin.delete(`/application/${second.application.id}`), 204);
  const deleted = await interrupted(admin, second.environment.id, ['start', 'apply']);
  expect(await end()).toBe(2);
  expect(await findDeployment(cancelled)).toMatchObject({ status: 'ENDED', outcome: 'CANCELED' });
  expect(ok(await admin.get(`/application/${first.application.id}/status`), 200).state).toBe('CANCELED');
  expect(await findDeployment(deleted)).toMatchObject({ status: 'ENDED', outcome: 'ERROR' });
  expect(ok(await admin.get(`/application/${second.application.id}/status`), 200).state).toBe('DELETE_ERROR');
  expect((await admin.post(`/application/${second.application.id}/deploy`)).status).toBe(200);
});

test('what waits stays in the queue until it is cancelled as a whole', async () => {
  const admin = await app.organization();
  const { environment, application } = await makeExample(admin);
  await inTransaction(app.context, cancelAllWaiting);
  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  await end();
  expect(ok(await admin.get(`/environment/${environment.id}/deploymentQueue`), 200).results).toHaveLength(1);
  expect(await inTransaction(app.context, cancelAllWaiting)).toBe(1);
  expect(ok(await admin.get(`/application/${application.id}/status`), 200).state).toBe('CANCELED');
});
