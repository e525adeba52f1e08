import { expect, onTestFinished, test, vi } from 'vitest';
import type { Handle } from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
const engine = useEngine(app);

const stateOf = async (admin: Actor, id: string): Promise<string> =>
  ok(await admin.get(`/application/${id}/status`), 200).state;
const stepsOf = (status: { steps: { details: { step_name: string; status: string }[] } }) =>
  status.steps.details.map((step) => `${step.step_name} ${step.status}`);

/** An application that is deployed already, and whose next deployment hangs in the runtime. */
async function hanging(admin: Actor) {
  const example = await makeExample(admin);
  const url = `/application/${example.application.id}`;
  ok(await admin.post(`${url}/deploy?wait=40`), 200);
  engine.runtime.faults.delayMs = { submit: 60_000 };
  ok(await admin.post(`${url}/deploy`), 200);
  await expect.poll(() => stateOf(admin, example.application.id)).toBe('DEPLOYING');
  return { ...example, url };
}

test('a cancelled deployment comes to an end at its next safe point, and the next one goes on as ever', async () => {
  const admin = await app.organization();
  const { environment, application, url } = await hanging(admin);
  ok(await admin.post(`/environment/${environment.id}/cancelDeployment?wait=40`), 200);
  const status = ok(await admin.get(`${url}/status`), 200);
  expect(status).toMatchObject({ state: 'CANCELED', status: 'CANCELED' });
  expect(stepsOf(status).at(-1)).toBe('DEPLOYMENT CANCEL');
  engine.runtime.faults.delayMs = {};
  ok(await admin.post(`${url}/redeploy?wait=40`), 200);
  expect(await stateOf(admin, application.id)).toBe('DEPLOYED');
});

test('a forced cancel ends at once; the next deployment begins when the work has stopped, and skips nothing', async () => {
  const admin = await app.organization();
  const { environment, application, url } = await hanging(admin);
  const answer = ok(await admin.post(`/environment/${environment.id}/cancelDeployment`, { force_cancel: true }), 200);
  expect(answer.state).toBe('CANCELED');
  expect(await stateOf(admin, application.id)).toBe('CANCELED');
  ok(await admin.post(`/environment/${environment.id}/cancelDeployment`), 409);
  engine.runtime.faults.delayMs = {};
  const status = ok(await admin.post(`${url}/redeploy?wait=40`), 200);
  expect(status.state).toBe('DEPLOYED');
  expect(stepsOf(status)).toEqual([
    'GIT_CLONE SUCCESS',
    'BUILD_QUEUEING SUCCESS',
    'BUILD SUCCESS',
    'DEPLOYMENT SUCCESS',
  ]);
  const left = await app.db.selectFrom('deployment').select('id').where('leftover_worker', 'is not', null).execute();
  expect(left).toEqual([]);
});

test('what a first deployment started before it was cut off by force is ended by a stop, although its handle was never kept', async () => {
  const admin = await app.organization();
  const { environment, application } = await makeExample(admin);
  const url = `/application/${application.id}`;
  const submit = engine.runtime.submit.bind(engine.runtime);
  const cancelled = Promise.withResolvers<void>();
  const { promise: handle, resolve } = Promise.withResolvers<Handle>();
  const submitted = vi.spyOn(engine.runtime, 'submit').mockImplementation(async (...given) => {
    resolve(await submit(...given));
    await cancelled.promise;
    return handle;
  });
  onTestFinished(() => submitted.mockRestore());
  ok(await admin.post(`${url}/deploy`), 200);
  const standing = await handle;
  ok(await admin.post(`/environment/${environment.id}/cancelDeployment`, { force_cancel: true }), 200);
  cancelled.resolve();
  expect(await engine.runtime.observe(standing)).toMatchObject({ state: 'running' });
  ok(await admin.post(`${url}/stop?wait=40`), 200);
  expect(await stateOf(admin, application.id)).toBe('STOPPED');
  expect(await engine.runtime.observe(standing)).toMatchObject({ state: 'stopped' });
});

test('webhooks hear once of every service that was cancelled: waiting, at work, and cut off by force', async () => {
  const admin = await app.organization();
  const { environment, application } = await hanging(admin);
  const url = `/environment/${environment.id}`;
  ok(await admin.post(`${url}/redeploy`), 200);
  ok(await admin.post(`${url}/cancelDeployment?wait=40`), 200);
  ok(await admin.post(`${url}/deploy`), 200);
  await expect.poll(() => stateOf(admin, application.id)).toBe('DEPLOYING');
  ok(await admin.post(`${url}/cancelDeployment`, { force_cancel: true }), 200);
  engine.runtime.faults.delayMs = {};
  const told = await app.db
    .selectFrom('outbox')
    .select('payload')
    .where('organization_id', '=', admin.organizationId)
    .orderBy('id')
    .execute();
  const of = (number: number) =>
    told
      .filter(({ payload }) => payload.generation === number)
      .map(({ payload }) => `${payload.type} ${payload.status}`);
  expect([2, 3, 4].map(of)).toEqual([
    ['DEPLOYMENT_STARTED WAITING_RUNNING', 'DEPLOYMENT_CANCELLED CANCELED'],
    ['DEPLOYMENT_CANCELLED CANCELED'],
    ['DEPLOYMENT_STARTED WAITING_RUNNING', 'DEPLOYMENT_CANCELLED CANCELED'],
  ]);
  const open = await app.db
    .selectFrom('deployment_step')
    .select('name')
    .where('organization_id', '=', admin.organizationId)
    .where('status', '=', 'STARTED')
    .execute();
  expect(open).toEqual([]);
});

test('nothing begins in an environment while a worker that was cut off by force may still be at work', async () => {
  const admin = await app.organization();
  const { environment, url, application } = await hanging(admin);
  // The worker does not notice: it neither hears of the cancel nor stops its work.
  ok(await admin.post(`/environment/${environment.id}/cancelDeployment`, { force_cancel: true }), 200);
  engine.runtime.faults.delayMs = {};
  const holder = await app.database.pool.connect();
  try {
    const { rows } = await holder.query(`select nextval('worker_number') as id`);
    await holder.query('select pg_advisory_lock(7301, $1)', [rows[0].id]);
    await holder.query(
      `update deployment set leftover_worker = $1, leftover_until = now() + interval '1 hour' where environment_id = $2 and outcome = 'CANCELED'`,
      [rows[0].id, environment.id],
    );
    ok(await admin.post(`${url}/deploy?wait=2`), 200);
    expect(await stateOf(admin, application.id)).toBe('DEPLOYMENT_QUEUED');
  } finally {
    holder.release(true);
  }
  await expect.poll(() => stateOf(admin, application.id)).toBe('DEPLOYED');
});

test('a cancelled delete of an environment leaves it usable', async () => {
  const admin = await app.organization();
  const { environment, application, url } = await makeExample(admin).then((example) => ({
    ...example,
    url: `/application/${example.application.id}`,
  }));
  ok(await admin.post(`${url}/deploy?wait=40`), 200);
  engine.runtime.faults.delayMs = { remove: 60_000 };
  ok(await admin.delete(`/environment/${environment.id}`), 204);
  await expect.poll(() => stateOf(admin, application.id)).toBe('DELETING');
  ok(await admin.post(`/environment/${environment.id}/cancelDeployment?wait=40`), 200);
  expect(await stateOf(admin, application.id)).toBe('CANCELED');
  engine.runtime.faults.delayMs = {};
  ok(await admin.post(`${url}/deploy?wait=40`), 200);
  expect(await stateOf(admin, application.id)).toBe('DEPLOYED');
});
