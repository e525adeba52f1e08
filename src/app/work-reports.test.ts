import { expect, test } from 'vitest';
import { createMetrics } from '#app/operations.ts';
import { readWork, WORK_REPORTS } from '#app/work-reports.ts';
import { sql } from '#platform/database/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp();

test('the figures of each kind of work are read, and those of a waiting deployment and a failed task told', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  await sql`insert into scheduled_task (name, last_error, last_ended_at, next_at)
    values ('broken', 'No.', now(), now() + interval '1 hour')`.execute(app.db);
  const found = await readWork(app.db);
  expect(found.map(({ name }) => name)).toEqual(WORK_REPORTS.map(({ name }) => name));
  expect(new Set(found.map(({ name }) => name)).size).toBe(WORK_REPORTS.length);
  const of = (name: string) => found.find((one) => one.name === name);
  expect(of('deployments')).toMatchObject({ waiting: 1, running: 0, retried: 0, oldestWaiting: expect.any(Date) });
  await sql`update deployment set status = 'RECAP', claim_token = gen_random_uuid(),
    lease_until = now() + interval '1 minute'`.execute(app.db);
  const [deployments] = await readWork(app.db);
  expect(deployments, 'the worker only writes the end').toMatchObject({ waiting: 0, running: 1 });
  expect(of('recurring-tasks')).toMatchObject({
    waiting: 0,
    retried: 1,
    lastFailure: { at: expect.any(Date), error: 'broken: No.' },
  });
  expect(of('webhook-deliveries')).toMatchObject({ waiting: 0, running: 0, oldestWaiting: null, lastFailure: null });
});

test('Prometheus reads the figures of each kind of work', async () => {
  const text = await createMetrics(app.db, app.platform.settings).registry.metrics();
  for (const { name } of WORK_REPORTS)
    expect(text).toMatch(new RegExp(`quarterdeck_work\\{work="${name}",state="waiting"\\} \\d`));
  expect(text).toMatch(/quarterdeck_work_last_failure_timestamp_seconds\{work="recurring-tasks"\} \d/);
  expect(text).toMatch(/quarterdeck_work_oldest_waiting_seconds\{work="deployments"\} \d/);
});
