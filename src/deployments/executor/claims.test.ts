import { expect, test, vi } from 'vitest';
import { chooseAlone, claimNext } from '#deployments/executor/claims.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp();

const databaseTime = async () => (await sql<{ at: Date }>`select clock_timestamp() as at`.execute(app.db)).rows[0]!.at;

const choosersThatWait = async () =>
  (
    await sql<{ n: number }>`select count(*)::int as n from pg_locks
      where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())`.execute(
      app.db,
    )
  ).rows[0]!.n;

test('a deployment starts when it is chosen: what a worker waits for before it chooses comes before that', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  const { claims, freed } = await chooseAlone(app.db, async () => {
    const claims = claimNext(app.db, { workerId: 1, nodeId: newId(), organizationSlots: 1, limit: 1 });
    await vi.waitFor(async () => expect(await choosersThatWait()).toBe(1));
    // In a list, because a promise that is returned would be waited for here, under the lock.
    return { claims: [claims], freed: await databaseTime() };
  });
  const [claim] = await claims[0]!;
  expect(claim!.deployment.started_at!.getTime()).toBeGreaterThanOrEqual(freed.getTime());
});
