import { expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import {
  enterReadOnly,
  leaveReadOnly,
  READ_ONLY_CODE,
  readInstallation,
  removeGuards,
} from '#platform/installation/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { listSchema } from '#test/harness/schema.ts';

const app = useApp({ QUARTERDECK_RATE_LIMIT_PER_HOUR: '1000' });
const enter = () => app.db.transaction().execute((db) => enterReadOnly(db, new Date('2026-01-01T00:00:00Z')));

test('read-only every table refuses writes whoever asks, reads are answered, and afterwards nothing is left of it', async () => {
  const admin = await app.organization();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
  const schema = await listSchema(app.databaseConfig);
  await enter();
  expect(await readInstallation(app.db)).toMatchObject({
    epoch: 2,
    readOnlySince: expect.any(Date),
    restoredFrom: new Date('2026-01-01T00:00:00Z'),
  });

  const { rows } = await sql<{ name: string }>`select relname::text as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`.execute(
    app.db,
  );
  const written: string[] = [];
  for (const { name } of rows)
    await sql`delete from ${sql.table(name)} where false`.execute(app.db).then(
      () => written.push(name),
      (error: unknown) => expect(error).toMatchObject({ code: READ_ONLY_CODE }),
    );
  expect(written).toEqual([
    'installation',
    'node',
    'passkey',
    'passkey_challenge',
    'rate_window',
    'schema_migration',
    'sign_in_attempt',
    'sign_in_session',
    'stream_event',
    'stream_state',
    'user_account',
  ]);

  const list = await admin.get(`/organization/${admin.organizationId}/project`);
  expect(ok(list, 200).results).toHaveLength(1);
  expect(list.headers['x-ratelimit-remaining']).toBeDefined();
  for (const answer of [
    await admin.post(`/organization/${admin.organizationId}/project`, { name: 'q' }, { 'idempotency-key': 'k' }),
    await admin.put(`/project/${project.id}`, { name: 'r' }),
    await admin.delete(`/project/${project.id}`),
  ])
    expect(answer).toMatchObject({
      status: 503,
      body: {
        status: 503,
        error: 'Service Unavailable',
        message: expect.stringContaining('`quarterdeck restore --accept`'),
      },
    });

  await leaveReadOnly(app.db, 7);
  expect(await readInstallation(app.db)).toMatchObject({ epoch: 7, readOnlySince: null });
  ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'q' }, { 'idempotency-key': 'k' }), 201);
  await removeGuards(app.db);
  expect(await listSchema(app.databaseConfig)).toBe(schema);
  ok(await admin.put(`/project/${project.id}`, { name: 'r' }), 200);
});

test('an epoch is never lowered', async () => {
  await enter();
  await leaveReadOnly(app.db, 1);
  await removeGuards(app.db);
  expect((await readInstallation(app.db)).epoch).toBe(8);
});
