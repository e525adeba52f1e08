import { expect, test } from 'vitest';
import { chooseAlone, claimNext } from '#deployments/executor/claims.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';
import { sessionsThatWait } from '#test/harness/waiting.ts';

const app = useApp();

/** The database's time, some milliseconds after what was before: dates have no finer ones. */
const laterTime = async () =>
  (await sql<{ at: Date }>`select clock_timestamp() as at from pg_sleep(0.01)`.execute(app.db)).rows[0]!.at;

test('a deployment starts when it is chosen: what a worker waits for before it chooses comes before that', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  const { claims, freed } = await chooseAlone(app.db, async () => {
    const claims = claimNext(app.db, { workerId: 1, nodeId: newId(), organizationSlots: 1, limit: 1 });
    await expect.poll(() => sessionsThatWait(app.db)).toBe(1);
    // In a list, because a promise that is returned would be waited for here, under the lock.
    return { claims: [claims], freed: await laterTime() };
  });
  const [claim] = await claims[0]!;
  expect(claim!.deployment.started_at!.getTime()).toBeGreaterThanOrEqual(freed.getTime());
});
