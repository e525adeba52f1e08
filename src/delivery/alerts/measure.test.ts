import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ruleBody } from '#delivery/alerts/alerts.fixture.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { measure } from '#delivery/alerts/measure.ts';
import type { DueRule } from '#delivery/alerts/queries.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp();

let admin: Actor;
let cluster: string;
let organization: string;
let environment: string;
let service: string;
beforeAll(async () => {
  admin = await app.organization();
  const made = await makeExample(admin);
  cluster = made.environment.cluster_id;
  [organization, environment, service] = [admin.organizationId, made.environment.id, made.application.id];
});

const found = async (promql: string, threshold?: number, operator?: string) => {
  const rule = { organization_id: organization, target_type: 'ENVIRONMENT', target_id: environment };
  const condition = { promql, operator, ...(threshold === undefined ? {} : { threshold }) };
  return (await measure(app.db, { ...rule, id: newId(), condition } as DueRule)).map(({ subject_id }) => subject_id);
};

test('an instance that is not ready is found as long as its warning stands', async () => {
  expect(await found('service_not_ready')).toEqual([]);
  await sql`insert into service_warning (organization_id, service_id, code, subject, message)
    values (${organization}, ${service}, 'INSTANCES_NOT_READY', '', 'm')`.execute(app.db);
  expect(await found('service_not_ready')).toEqual([service]);
  await sql`update service_warning set code = 'OTHER'`.execute(app.db);
  expect(await found('service_not_ready')).toEqual([]);
});

test('a job is found whose last ended run has failed: one that runs, or was cancelled, says nothing', async () => {
  const run = (state: string, minutes: number) =>
    sql`insert into job_execution (id, organization_id, environment_id, service_id, event, state, created_at)
      values (${newId()}, ${organization}, ${environment}, ${service}, 'CRON', ${state}, now() + make_interval(mins => ${minutes}))`.execute(
      app.db,
    );
  await run('SUCCEEDED', 1);
  expect(await found('job_failed')).toEqual([]);
  await run('FAILED', 2);
  await run('CANCELED', 3);
  await run('RUNNING', 4);
  expect(await found('job_failed')).toEqual([service]);
  await run('SUCCEEDED', 5);
  expect(await found('job_failed')).toEqual([]);
});

const addBackup = (status: string, minutes: number) =>
  sql`insert into database_backup (id, organization_id, database_id, database_name, project_id, project_name, environment_id,
      environment_name, environment_mode, name, message, origin, status, type, version, format, extension, leaves_out, key, requested_by_name, created_at)
      select ${newId()}, ${organization}, ${service}, 'd', e.project_id, 'p', e.id, 'e', e.mode, 'b', '', 'DAILY', ${status}, 'POSTGRESQL', '16',
        'f', 'x', '', '\\x00', 'ada', now() + make_interval(mins => ${minutes}) from environment e where e.id = ${environment}`.execute(
    app.db,
  );

test('a database is found whose last ended backup has failed', async () => {
  await addBackup('READY', 1);
  expect(await found('backup_failed')).toEqual([]);
  await addBackup('FAILED', 2);
  await addBackup('QUEUED', 3);
  expect(await found('backup_failed')).toEqual([service]);
  await addBackup('READY', 4);
  expect(await found('backup_failed')).toEqual([]);
});

test('a certificate is found that expires within the days of the rule', async () => {
  await sql`insert into custom_domain (id, organization_id, service_id, domain, generate_certificate, challenge, certificate_expires_at)
    values (${newId()}, ${organization}, ${service}, 'shop.example.com', true, 'c', now() + interval '10 days')`.execute(
    app.db,
  );
  expect(await found('certificate_days_left', 9)).toEqual([]);
  expect(await found('certificate_days_left', 11)).toEqual([service]);
});

describe('what instances take', () => {
  beforeEach(async () => {
    await app.db.deleteFrom('service_metric').execute();
    await app.db.updateTable('service').set({ wanted: 'running' }).where('id', '=', service).execute();
  });

  /** Stores a minute with two measurements. Their means are 450 of 500 mCPU and 64 of 128 MiB. */
  const minute = (ago: number, changes: object = {}) =>
    app.db
      .insertInto('service_metric')
      .values({
        organization_id: organization,
        service_id: service,
        resolution: 60,
        at: new Date(Date.now() - ago * 60_000),
        instances: 1,
        restarts: 0,
        samples: 2,
        cpu_milli_sum: 900,
        cpu_milli_max: 500,
        cpu_milli_limit: 500,
        memory_bytes_sum: 128 * 2 ** 20,
        memory_bytes_max: 2 ** 30,
        memory_bytes_limit: 128 * 2 ** 20,
        ...changes,
      })
      .execute();

  test.each([
    ['cpu_percent', 'ABOVE', 89, 90],
    ['cpu_percent', 'ABOVE_OR_EQUAL', 90, 91],
    ['cpu_percent', 'BELOW', 91, 90],
    ['cpu_percent', 'BELOW_OR_EQUAL', 90, 89],
    ['memory_percent', 'ABOVE', 49, 50],
  ])('%s %s compares the mean of the last minute with its limit', async (name, operator, holds, does_not) => {
    expect(await found(name, holds, operator)).toEqual([]);
    await minute(1);
    await minute(2, { cpu_milli_sum: 1, memory_bytes_sum: 1 });
    expect(await found(name, holds, operator)).toEqual([service]);
    expect(await found(name, does_not, operator)).toEqual([]);
  });

  test('is not found without a limit, without a recent measurement, and of a service that is stopped', async () => {
    await minute(1, { cpu_milli_limit: 0 });
    expect(await found('cpu_percent', 10, 'ABOVE')).toEqual([]);
    await minute(0, { samples: 0 });
    expect(await found('memory_percent', 10, 'ABOVE')).toEqual([service]);
    await app.db.updateTable('service').set({ wanted: 'stopped' }).where('id', '=', service).execute();
    expect(await found('memory_percent', 10, 'ABOVE')).toEqual([]);
    await app.db.updateTable('service').set({ wanted: 'running' }).where('id', '=', service).execute();
    await app.db
      .updateTable('service_metric')
      .set({ at: new Date(Date.now() - 200_000) })
      .where('samples', '>', 0)
      .execute();
    expect(await found('memory_percent', 10, 'ABOVE')).toEqual([]);
  });

  test('restarts are counted over ten minutes; new instances count from 0', async () => {
    for (const [ago, restarts] of [
      [12, 100],
      [9, 103],
      [6, 0],
      [3, 2],
      [1, 4],
    ] as const)
      await minute(ago, { restarts });
    expect(await found('restarts', 3, 'ABOVE')).toEqual([service]);
    expect(await found('restarts', 4, 'ABOVE')).toEqual([]);
    expect(await found('restarts', 3.5, 'ABOVE')).toEqual([service]);
    expect(await found('restarts', 4, 'ABOVE_OR_EQUAL')).toEqual([service]);
    await app.db.updateTable('service').set({ wanted: 'stopped' }).where('id', '=', service).execute();
    expect(await found('restarts', 3, 'ABOVE')).toEqual([]);
  });

  test.each([
    ['restarts', 0],
    ['memory_percent', 49],
  ])(
    'an alert of %s stays while nothing is measured, and is over once the service is stopped',
    async (promql, threshold) => {
      const { body: receiver } = await admin.post('/alert-receivers', {
        organization_id: organization,
        name: 'on call',
        description: '',
        type: 'SLACK',
        send_resolved: true,
        webhook_url: 'https://slack.invalid/secret',
      });
      const condition = { kind: 'BUILT', promql, operator: 'ABOVE', threshold };
      const target = { target_type: 'ENVIRONMENT', target_id: environment };
      const { id } = ok(
        await admin.post('/alert-rules', ruleBody(admin, cluster, target, [receiver.id], { condition })),
        201,
      );
      const rule = { organization_id: organization, ...target, id, condition } as unknown as DueRule;
      const states = async () => (await measure(app.db, rule)).map(({ holds }) => holds);
      await minute(1, { restarts: 0 });
      await minute(0, { restarts: 1 });
      expect(await states()).toEqual([true]);
      await sql`insert into alert_incident (organization_id, rule_id, subject_id, name, detail, since)
      values (${organization}, ${id}, ${service}, 'n', 'd', now())`.execute(app.db);
      await app.db.deleteFrom('service_metric').execute();
      expect(await states()).toEqual([null]);
      await app.db.updateTable('service').set({ wanted: 'stopped' }).where('id', '=', service).execute();
      expect(await states()).toEqual([]);
    },
  );
});

describe('requests of a service', () => {
  beforeEach(async () => {
    await app.db.deleteFrom('service_requests').execute();
    await app.db.updateTable('service').set({ wanted: 'running' }).where('id', '=', service).execute();
  });

  /** Stores a minute with 120 requests. A tenth failed, and 96 of 100 were answered within 5 to 10 ms. */
  const minute = (ago: number, statuses = [0, 100, 0, 8, 12], latencies = [0, 115, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]) =>
    sql`insert into service_requests (organization_id, service_id, resolution, at, seconds, statuses, latencies)
      values (${organization}, ${service}, 60, ${new Date(Date.now() - ago * 60_000)}, 60, ${statuses}::bigint[], ${latencies}::bigint[])`.execute(app.db); // prettier-ignore

  test.each([
    ['requests_per_second', 'ABOVE', 1.9, 2],
    ['requests_per_second', 'ABOVE_OR_EQUAL', 2, 2.1],
    ['requests_per_second', 'BELOW', 2.1, 2],
    ['error_percent', 'ABOVE', 9.9, 10],
    ['error_percent', 'ABOVE_OR_EQUAL', 10, 10.1],
    ['latency_p95_ms', 'ABOVE', 9, 10],
  ])('%s %s is compared with those of the last minute', async (name, operator, holds, does_not) => {
    expect(await found(name, holds, operator)).toEqual([]);
    await minute(1);
    await minute(2, [0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expect(await found(name, holds, operator)).toEqual([service]);
    expect(await found(name, does_not, operator)).toEqual([]);
  });

  test('where there are none, nothing fails and nothing is slow', async () => {
    await minute(1, [0, 0, 0, 0, 0], []);
    expect(await found('error_percent', 0, 'ABOVE')).toEqual([]);
    expect(await found('latency_p95_ms', 1, 'ABOVE')).toEqual([]);
    expect(await found('requests_per_second', 1, 'BELOW')).toEqual([service]);
  });

  test('are not found once they are no longer the present, or the service is stopped', async () => {
    await minute(4);
    expect(await found('error_percent', 1, 'ABOVE')).toEqual([]);
    await minute(1);
    expect(await found('error_percent', 1, 'ABOVE')).toEqual([service]);
    await app.db.updateTable('service').set({ wanted: 'stopped' }).where('id', '=', service).execute();
    expect(await found('error_percent', 1, 'ABOVE')).toEqual([]);
  });
});

test('a managed database is found whose last good backup is too old, counted from its making where there is none', async () => {
  const set = (age: number, spec: object) =>
    sql`update service set kind = 'DATABASE', wanted = 'running', spec = ${JSON.stringify(spec)}::jsonb,
      created_at = now() - make_interval(hours => ${age}) where id = ${service}`.execute(app.db);
  await app.db.deleteFrom('database_backup').execute();
  const spec = { mode: 'MANAGED' };
  await set(25, spec);
  expect(await found('backup_age_hours', 26, 'ABOVE')).toEqual([]);
  await set(27, spec);
  expect(await found('backup_age_hours', 26, 'ABOVE')).toEqual([service]);
  await set(27, { mode: 'CONTAINER' });
  expect(await found('backup_age_hours', 26, 'ABOVE')).toEqual([]);
  await set(100, spec);
  await addBackup('READY', -26 * 60 - 1);
  await addBackup('FAILED', -1);
  expect(await found('backup_age_hours', 26, 'ABOVE')).toEqual([service]);
  await addBackup('READY', -25 * 60);
  expect(await found('backup_age_hours', 26, 'ABOVE')).toEqual([]);
});
