import { beforeAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { measure } from '#delivery/alerts/measure.ts';
import type { DueRule } from '#delivery/alerts/queries.ts';
import { useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp();

let organization: string;
let environment: string;
let service: string;
beforeAll(async () => {
  const admin = await app.organization();
  const made = await makeExample(admin);
  [organization, environment, service] = [admin.organizationId, made.environment.id, made.application.id];
});

const found = async (promql: string, threshold?: number) => {
  const rule = { organization_id: organization, target_type: 'ENVIRONMENT', target_id: environment };
  const condition = { promql, ...(threshold === undefined ? {} : { threshold }) };
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

test('a database is found whose last ended backup has failed', async () => {
  const backup = (status: string, minutes: number) =>
    sql`insert into database_backup (id, organization_id, database_id, database_name, project_id, project_name, environment_id,
      environment_name, environment_mode, name, message, origin, status, type, version, format, extension, leaves_out, key, requested_by_name, created_at)
      select ${newId()}, ${organization}, ${service}, 'd', e.project_id, 'p', e.id, 'e', e.mode, 'b', '', 'DAILY', ${status}, 'POSTGRESQL', '16',
        'f', 'x', '', '\\x00', 'ada', now() + make_interval(mins => ${minutes}) from environment e where e.id = ${environment}`.execute(
      app.db,
    );
  await backup('READY', 1);
  expect(await found('backup_failed')).toEqual([]);
  await backup('FAILED', 2);
  await backup('QUEUED', 3);
  expect(await found('backup_failed')).toEqual([service]);
  await backup('READY', 4);
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
