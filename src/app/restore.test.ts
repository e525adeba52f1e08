import { expect, test } from 'vitest';
import { accept, holdAll } from '#app/restore.ts';
import { enterReadOnly, readInstallation } from '#platform/installation/index.ts';
import { newId } from '#kernel/ids.ts';
import { makeLink } from '#resources/sign-in/links.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp();

/** A restored installation with a service that is held and a request that waits. */
async function restored() {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  await app.db.updateTable('service').set({ restored_at: new Date() }).where('id', '=', application.id).execute();
  await app.db.transaction().execute((db) => enterReadOnly(db, new Date()));
  return {
    state: async () => ok(await admin.get(`/application/${application.id}/status`), 200).state,
    held: async () => {
      const row = await app.db
        .selectFrom('service')
        .select('restored_at')
        .where('id', '=', application.id)
        .executeTakeFirstOrThrow();
      return row.restored_at !== null;
    },
  };
}

test('what waited is cancelled and what is missing is left alone, unless it is asked for', async () => {
  const { state, held } = await restored();
  const { epoch } = await readInstallation(app.db);
  const done = await accept(app, { applyMissing: false, runWaiting: false, worldEpoch: 0 });
  expect(done).toEqual({ epoch, cancelled: 1, applied: 0 });
  expect([await state(), await held()]).toEqual(['CANCELED', true]);
});

test('asked for, what waited goes on and what is missing is looked after', async () => {
  const { state, held } = await restored();
  const done = await accept(app, { applyMissing: true, runWaiting: true, worldEpoch: 7 });
  expect(done).toMatchObject({ epoch: 8, cancelled: 0 });
  expect(done.applied).toBeGreaterThan(0);
  expect([await state(), await held()]).toEqual(['DEPLOYMENT_QUEUED', false]);
});

test('sessions and links of the backup are over, and people sign in while nothing else is written', async () => {
  const { userId } = await app.organization();
  const secretOf = async () => new URL((await makeLink(app.context, userId)).url).hash.slice(1);
  const given = { name: `n${newId()}`, password: 'correct horse battery' };
  const { token } = ok(await app.anonymous('POST', '/signIn/link/redeem', { ...given, secret: await secretOf() }), 201);
  const link = await secretOf();
  await app.db.transaction().execute((db) => holdAll({ ...app.context, db }, new Date()));
  ok(await app.session(token).get('/account'), 401);
  ok(await app.anonymous('POST', '/signIn/link', { secret: link }), 404);
  const anew = ok(await app.anonymous('POST', '/signIn', given), 201);
  await app.db
    .updateTable('sign_in_session')
    .set({ last_used_at: new Date(Date.now() - 3600_000) })
    .execute();
  ok(await app.session(anew.token).get('/account'), 200);
  await accept(app, { applyMissing: false, runWaiting: false, worldEpoch: 0 });
});

test('there is nothing to accept where nothing was restored', async () => {
  await expect(accept(app, { applyMissing: false, runWaiting: false, worldEpoch: 0 })).rejects.toThrow(
    'nothing to accept',
  );
});
