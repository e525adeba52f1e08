import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { listExpired } from '#resources/environment/index.ts';
import { deleteExpiredEnvironments } from '#services/capabilities/environment/actions/expiry.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
const { signal } = new AbortController();

/** Makes an environment whose time is over. */
async function expired(admin: Actor): Promise<string> {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const { id } = ok(await admin.post(`/project/${project.id}/environment`, { name: newId() }), 201);
  await sql`update environment set expires_at = now() - interval '1 minute' where id = ${id}`.execute(app.db);
  return id;
}

const isThere = async (id: string) =>
  (await app.db.selectFrom('environment').select('id').where('id', '=', id).executeTakeFirst()) !== undefined;

/** Holds a lock on an environment until the returned function is called. */
async function lock(id: string, change = sql`select`) {
  const locked = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const done = app.db.transaction().execute(async (db) => {
    await sql`select id from environment where id = ${id} for update`.execute(db);
    await change.execute(db);
    locked.resolve();
    await release.promise;
  });
  await locked.promise;
  return async () => {
    release.resolve();
    await done;
  };
}

test('an environment that cannot be deleted, and one that is locked for long, keep no other one from being deleted', async () => {
  const [failing, locked, free] = await Promise.all([1, 2, 3].map(async () => expired(await app.organization())));
  await sql`create function refuse_deletion() returns trigger language plpgsql as $$ begin
    raise exception 'refused' using errcode = 'P0001'; end $$`.execute(app.db);
  await sql`create trigger refuse_deletion before delete on environment for each row
    when (old.id = ${sql.lit(failing)}::uuid) execute function refuse_deletion()`.execute(app.db);
  const release = await lock(locked!);
  await deleteExpiredEnvironments(app.platform, signal);
  expect(await Promise.all([failing!, locked!, free!].map(isThere))).toEqual([true, true, false]);
  await release();
  await deleteExpiredEnvironments(app.platform, signal);
  expect(await Promise.all([failing!, locked!].map(isThere))).toEqual([true, false]);
  await sql`drop trigger refuse_deletion on environment`.execute(app.db);
  await deleteExpiredEnvironments(app.platform, signal);
  expect(await isThere(failing!)).toBe(false);
});

test('an environment whose end is put off while it is about to be deleted stays', async () => {
  const id = await expired(await app.organization());
  const release = await lock(id, sql`update environment set expires_at = now() + interval '7 days' where id = ${id}`);
  const run = deleteExpiredEnvironments(app.platform, signal);
  const waits = async () =>
    (
      await sql`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`.execute(
        app.db,
      )
    ).rows.length;
  await expect.poll(waits).toBeGreaterThan(0);
  await release();
  await run;
  expect(await isThere(id)).toBe(true);
});

test('organizations take turns: the environments of one do not all come first', async () => {
  const [one, other] = [await app.organization(), await app.organization()];
  for (let n = 0; n < 3; n++) await expired(one);
  await expired(other);
  await sql`update environment set expires_at = expires_at - interval '1 hour' where organization_id = ${one.organizationId}`.execute(
    app.db,
  );
  expect((await listExpired(app.db, 2)).map(({ organization_id }) => organization_id)).toEqual([
    one.organizationId,
    other.organizationId,
  ]);
});
