import { describe, expect, test } from 'vitest';
import { applyDeploymentRules } from '#resources/deployment-rule/index.ts';
import { nextLook } from '#resources/deployment-rule/hours.ts';
import { requestAutomatically } from '#services/capabilities/service/actions/request.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
useEngine(app);

const HOURS = {
  auto_stop: true,
  timezone: 'Europe/Berlin',
  start_time: '1970-01-01T08:00:00.000Z',
  stop_time: '1970-01-01T19:00:00.000Z',
  weekdays: ['MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY'],
};

/** The scheduler's task at some time; all that has to happen before it lies before it. */
const tick = (now: string) =>
  applyDeploymentRules(
    { ...app.platform, clock: { now: () => new Date(now) } },
    new AbortController().signal,
    requestAutomatically,
  );

/** Requests of an environment that came from a rule, in their order. */
const requestsOf = async (environmentId: string) => {
  const rows = await app.db
    .selectFrom('deployment')
    .select(['trigger', 'automatic', 'requested_by_name'])
    .where('environment_id', '=', environmentId)
    .where('automatic', '=', true)
    .orderBy('number')
    .execute();
  for (const row of rows) expect(row.requested_by_name).toBe('deployment rule');
  return rows.map((row) => row.trigger);
};

/** An environment that runs, with hours as they are seen at a time. */
async function makeRunning(admin: Actor, now: string, hours: object = {}) {
  const example = await makeExample(admin);
  const url = `/environment/${example.environment.id}`;
  ok(await admin.post(`${url}/deploy?wait=40`), 200);
  await setHours(admin, example.environment.id, now, hours);
  return { ...example, url, environmentId: example.environment.id as string };
}

/** Through the API, and looked at as if it were then. */
async function setHours(admin: Actor, environmentId: string, now: string, hours: object = {}) {
  const rule = ok(await admin.get(`/environment/${environmentId}/deploymentRule`), 200);
  ok(await admin.put(`/environment/${environmentId}/deploymentRule/${rule.id}`, { ...HOURS, ...hours }), 200);
  const row = await ruleRow(environmentId);
  await app.db
    .updateTable('environment_deployment_rule')
    .set({ next_at: nextLook(row, new Date(now)) })
    .where('environment_id', '=', environmentId)
    .execute();
}

const ruleRow = (environmentId: string) =>
  app.db
    .selectFrom('environment_deployment_rule')
    .selectAll()
    .where('environment_id', '=', environmentId)
    .executeTakeFirstOrThrow();

const settled = async (admin: Actor, url: string, state: string) =>
  expect.poll(async () => ok(await admin.get(`${url}/status`), 200).state).toBe(state);

describe('the hours of an environment', () => {
  test('stop it at their end and start it at their beginning, each once', async () => {
    const admin = await app.organization();
    // A Monday.
    const { environmentId, url, application } = await makeRunning(admin, '2027-01-04T12:00:00Z');
    await tick('2027-01-04T17:59:59Z');
    expect(await requestsOf(environmentId)).toEqual([]);
    await tick('2027-01-04T18:00:00Z');
    await settled(admin, url, 'STOPPED');
    await tick('2027-01-04T18:00:20Z');
    await tick('2027-01-05T06:59:00Z');
    expect(await requestsOf(environmentId)).toEqual(['STOP']);
    await tick('2027-01-05T07:00:10Z');
    await settled(admin, url, 'DEPLOYED');
    await tick('2027-01-05T07:00:30Z');
    expect(await requestsOf(environmentId)).toEqual(['STOP', 'REDEPLOY']);
    expect(ok(await admin.get(`/application/${application.id}/status`), 200).status).toBe('RUNNING');
  });

  test('stop nothing without auto_stop, and nothing at the moment in which they are set', async () => {
    const admin = await app.organization();
    const { environmentId } = await makeRunning(admin, '2027-01-04T22:00:00Z');
    await tick('2027-01-04T22:01:00Z');
    expect(await requestsOf(environmentId)).toEqual([]);
    await setHours(admin, environmentId, '2027-01-05T12:00:00Z', { auto_stop: false });
    await tick('2027-01-05T23:00:00Z');
    expect(await requestsOf(environmentId)).toEqual([]);
    expect((await ruleRow(environmentId)).next_at).toBeNull();
  });

  test('are made true once after a downtime, as they are then, and never again for what was missed', async () => {
    const admin = await app.organization();
    const missed = await makeRunning(admin, '2027-01-04T12:00:00Z');
    // Down from Monday noon until Saturday: nine changes, and off.
    await tick('2027-01-09T12:00:00Z');
    await settled(admin, missed.url, 'STOPPED');
    expect(await requestsOf(missed.environmentId)).toEqual(['STOP']);
    // Down over the beginning and the end of a day: it is stopped as it should be.
    await tick('2027-01-12T03:00:00Z');
    expect(await requestsOf(missed.environmentId)).toEqual(['STOP']);
    expect((await ruleRow(missed.environmentId)).next_at?.toISOString()).toBe('2027-01-12T07:00:00.000Z');
  });

  test('do nothing to an environment that is so already', async () => {
    const admin = await app.organization();
    const { environmentId, url } = await makeRunning(admin, '2027-01-04T12:00:00Z');
    ok(await admin.post(`${url}/stop?wait=40`), 200);
    await tick('2027-01-04T18:00:00Z');
    expect(await requestsOf(environmentId)).toEqual([]);
  });

  test('start only what was deployed and is not left out of deployments', async () => {
    const admin = await app.organization();
    const { environmentId, url, application } = await makeRunning(admin, '2027-01-04T12:00:00Z');
    const other = ok(await admin.post(`${url}/application`, exampleBody({ name: 'never deployed' })), 201);
    await tick('2027-01-04T18:00:00Z');
    await settled(admin, url, 'STOPPED');
    await tick('2027-01-05T07:00:00Z');
    await settled(admin, url, 'DEPLOYED');
    expect(ok(await admin.get(`/application/${other.id}/status`), 200).state).toBe('READY');
    await app.db.updateTable('service').set({ is_skipped: true }).where('id', '=', application.id).execute();
    await tick('2027-01-05T18:00:00Z');
    await settled(admin, url, 'STOPPED');
    await tick('2027-01-06T07:00:00Z');
    expect(await requestsOf(environmentId)).toEqual(['STOP', 'REDEPLOY', 'STOP']);
  });

  test('leave what a person deploys outside them until they change the next time', async () => {
    const admin = await app.organization();
    const { environmentId, url } = await makeRunning(admin, '2027-01-04T12:00:00Z');
    await tick('2027-01-04T18:00:00Z');
    await settled(admin, url, 'STOPPED');
    ok(await admin.post(`${url}/deploy?wait=40`), 200);
    await tick('2027-01-04T20:00:00Z');
    await tick('2027-01-05T07:00:00Z');
    expect(await requestsOf(environmentId)).toEqual(['STOP']);
    await tick('2027-01-05T18:00:00Z');
    await settled(admin, url, 'STOPPED');
    expect(await requestsOf(environmentId)).toEqual(['STOP', 'STOP']);
  });

  test('leave it also where the change is looked at only after the person', async () => {
    const admin = await app.organization();
    const { environmentId, url } = await makeRunning(admin, '2027-01-04T12:00:00Z');
    const deploy = async (at: string) => {
      const { deployment_request_id: id } = ok(await admin.post(`${url}/deploy?wait=40`), 200);
      await app.db
        .updateTable('deployment')
        .set({ created_at: new Date(at) })
        .where('id', '=', id)
        .execute();
    };
    await deploy('2027-01-04T18:00:05Z');
    await tick('2027-01-04T18:00:10Z');
    expect(await requestsOf(environmentId)).toEqual([]);
    // A request from before the end of the hours does not count.
    const before = await makeRunning(admin, '2027-01-04T12:00:00Z');
    await app.db
      .updateTable('deployment')
      .set({ created_at: new Date('2027-01-04T17:59:59Z') })
      .where('environment_id', '=', before.environmentId)
      .execute();
    await tick('2027-01-04T18:00:10Z');
    expect(await requestsOf(before.environmentId)).toEqual(['STOP']);
  });

  test('reach what is being deployed when they end', async () => {
    const admin = await app.organization();
    const { environmentId, url } = await makeRunning(admin, '2027-01-04T12:00:00Z');
    ok(await admin.post(`${url}/stop?wait=40`), 200);
    ok(await admin.post(`${url}/deploy`), 200);
    await tick('2027-01-04T18:00:00Z');
    await settled(admin, url, 'STOPPED');
    expect(await requestsOf(environmentId)).toEqual(['STOP']);
  });

  test('are looked after once by several processes', async () => {
    const admin = await app.organization();
    const { environmentId, url } = await makeRunning(admin, '2027-01-04T12:00:00Z');
    await Promise.all([1, 2, 3, 4].map(() => tick('2027-01-04T18:00:00Z')));
    await settled(admin, url, 'STOPPED');
    expect(await requestsOf(environmentId)).toEqual(['STOP']);
    const queued = await app.db
      .selectFrom('audit_event')
      .select('id')
      .where('environment_id', '=', environmentId)
      .where('event_type', '=', 'TRIGGER_STOP')
      .execute();
    expect(queued).toHaveLength(1);
  });

  test('wait while the cluster is locked, and are made true when it is unlocked', async () => {
    const admin = await app.organization();
    const { environmentId, url, environment } = await makeRunning(admin, '2027-01-04T12:00:00Z');
    ok(await admin.post(`/cluster/${environment.cluster_id}/lock`, { reason: 'upgrade', ttl_in_days: 1 }), 200);
    await tick('2027-01-04T18:00:00Z');
    expect(await requestsOf(environmentId)).toEqual([]);
    ok(await admin.delete(`/cluster/${environment.cluster_id}/lock`), 204);
    await tick('2027-01-04T18:05:00Z');
    await settled(admin, url, 'STOPPED');
  });

  test('follow the clocks of their zone over changes: what is left out and what comes twice', async () => {
    const admin = await app.organization();
    const everyDay = ['SATURDAY', 'SUNDAY', ...HOURS.weekdays];
    const nightly = { weekdays: everyDay, start_time: '1970-01-01T02:30:00Z', stop_time: '1970-01-01T12:00:00Z' };
    // Clocks go from 02:00 to 03:00 on 28 March 2027.
    const spring = await makeRunning(admin, '2027-03-27T09:00:00Z', nightly);
    await tick('2027-03-27T11:00:00Z');
    await settled(admin, spring.url, 'STOPPED');
    await tick('2027-03-28T00:59:59Z');
    expect(await requestsOf(spring.environmentId)).toEqual(['STOP']);
    await tick('2027-03-28T01:00:00Z');
    expect(await requestsOf(spring.environmentId)).toEqual(['STOP', 'REDEPLOY']);
    // And from 03:00 to 02:00 on 31 October.
    const autumn = await makeRunning(admin, '2027-10-30T12:00:00Z', {
      ...nightly,
      start_time: '1970-01-01T08:00:00Z',
      stop_time: '1970-01-01T02:30:00Z',
    });
    await tick('2027-10-31T00:30:00Z');
    await settled(admin, autumn.url, 'STOPPED');
    await tick('2027-10-31T01:30:00Z');
    expect(await requestsOf(autumn.environmentId)).toEqual(['STOP']);
    expect((await ruleRow(autumn.environmentId)).next_at?.toISOString()).toBe('2027-10-31T07:00:00.000Z');
  });

  test('of one environment that fails do not hold up those of another', async () => {
    const admin = await app.organization();
    const [broken, sound] = [
      await makeRunning(admin, '2027-01-04T11:00:00Z', { stop_time: '1970-01-01T18:00:00Z' }),
      await makeRunning(admin, '2027-01-04T12:00:00Z'),
    ];
    await app.db
      .updateTable('environment_deployment_rule')
      .set({ timezone: 'Nowhere/Known' })
      .where('environment_id', '=', broken.environmentId)
      .execute();
    await tick('2027-01-04T18:00:00Z');
    await settled(admin, sound.url, 'STOPPED');
    expect(await requestsOf(broken.environmentId)).toEqual([]);
  });
});
