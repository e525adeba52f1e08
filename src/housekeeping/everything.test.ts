import { expect, test } from 'vitest';
import { forgetConnected } from '#housekeeping/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
useEngine(app);

test('forgetting connected clusters leaves nothing to be removed there, and all that is on machines', async () => {
  const [here, connected] = [await app.organization('here'), await app.organization('connected')];
  for (const actor of [here, connected]) {
    const { application } = await makeExample(actor);
    ok(await actor.post(`/application/${application.id}/deploy?wait=40`), 200);
  }
  const of = (id: string) => app.db.selectFrom('service').select('id').where('organization_id', '=', id).execute();
  await app.db
    .updateTable('cluster')
    .set({ runtime: 'kubernetes', node_id: null })
    .where('organization_id', '=', connected.organizationId)
    .execute();
  await forgetConnected(app.db);
  expect(await of(connected.organizationId)).toEqual([]);
  expect(await of(here.organizationId)).toHaveLength(1);
  const tombstones = () => app.db.selectFrom('tombstone').select('runtime').where('kind', '<>', 'DEPLOYMENT').execute(); // Those are rows only.
  expect(await tombstones()).toEqual([]);
  await app.db.deleteFrom('service').execute();
  // What is deleted otherwise is removed.
  expect(await tombstones()).not.toEqual([]);
});
