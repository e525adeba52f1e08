import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { chooseAlone, claimNext, renewClaims, type Claim } from '#deployments/executor/claims.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { lockInTransaction } from '#platform/database/locks.ts';
import { makeExample } from '#test/harness/engine.ts';
import { sessionsThatWait } from '#test/harness/waiting.ts';

const app = useApp();
const KINDS = ['APPLICATION'];

/** The database's time, some milliseconds after what was before: dates have no finer ones. */
const laterTime = async () =>
  (await sql<{ at: Date }>`select clock_timestamp() as at from pg_sleep(0.01)`.execute(app.db)).rows[0]!.at;

test('a deployment starts when it is chosen: what a worker waits for before it chooses comes before that', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  const { claims, freed } = await chooseAlone(app.db, async () => {
    const claims = claimNext(app.db, { workerId: 1, nodeId: newId(), organizationSlots: 1, kinds: KINDS, limit: 1 });
    await expect.poll(() => sessionsThatWait(app.db)).toBe(1);
    // In a list, because a promise that is returned would be waited for here, under the lock.
    return { claims: [claims], freed: await laterTime() };
  });
  const [claim] = await claims[0]!;
  expect(claim!.deployment.started_at!.getTime()).toBeGreaterThanOrEqual(freed.getTime());
});

test('a deployment is claimed while audit events are sealed', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  await app.db.transaction().execute(async (sealing) => {
    await lockInTransaction(sealing, 'chains');
    const claims = await claimNext(app.db, {
      workerId: 1,
      nodeId: newId(),
      organizationSlots: 1,
      kinds: KINDS,
      limit: 10,
    });
    expect(claims.map(({ deployment }) => deployment.organization_id)).toContain(admin.organizationId);
  });
});

test('a deployment with a kind that a worker of an older release does not know is left to a newer one', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  const claim = (kinds: string[]) =>
    claimNext(app.db, { workerId: 1, nodeId: newId(), organizationSlots: 1, kinds, limit: 10 });
  const mine = (claims: Claim[]) =>
    claims.filter(({ deployment }) => deployment.organization_id === admin.organizationId).length;
  expect(mine(await claim(['DATABASE']))).toBe(0);
  expect(mine(await claim(['APPLICATION', 'DATABASE']))).toBe(1);
});

describe('the renewal of leases', () => {
  const leaseOf = async (id: string) =>
    (
      await app.db.selectFrom('deployment').select('lease_until').where('id', '=', id).executeTakeFirstOrThrow()
    ).lease_until!.getTime();

  test('of a deployment whose row is locked keeps no other one waiting, and loses none', async () => {
    const organizations = [await app.organization(), await app.organization()];
    for (const admin of organizations) {
      const { application } = await makeExample(admin);
      ok(await admin.post(`/application/${application.id}/deploy`), 200);
    }
    const all = await claimNext(app.db, {
      workerId: 1,
      nodeId: newId(),
      organizationSlots: 1,
      kinds: KINDS,
      limit: 10,
    });
    const [locked, free] = organizations.map(({ organizationId }) =>
      all.find(({ deployment }) => deployment.organization_id === organizationId)!,
    ) as [Claim, Claim];
    const before = [await leaseOf(locked.deployment.id), await leaseOf(free.deployment.id)];
    const client = new pg.Client(app.databaseConfig);
    await client.connect();
    try {
      await app.db.transaction().execute(async (other) => {
        await sql`select from deployment where id = ${locked.deployment.id} for update`.execute(other);
        const held = await renewClaims(client, [locked.token, free.token, newId()]);
        expect(new Map(held.map(({ token, renewed }) => [token, renewed]))).toEqual(
          new Map([
            [locked.token, false],
            [free.token, true],
          ]),
        );
      });
      expect(await leaseOf(locked.deployment.id)).toBe(before[0]);
      expect(await leaseOf(free.deployment.id)).toBeGreaterThan(before[1]!);
      const after = await renewClaims(client, [locked.token]);
      expect(after).toEqual([{ token: locked.token, reason: null, renewed: true }]);
    } finally {
      await client.end();
    }
  });
});
