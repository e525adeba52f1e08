import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { openDatabase, sql, type OpenDatabase } from '#platform/database/index.ts';
import { claimNext } from '#deployments/executor/claims.ts';
import { newId } from '#kernel/ids.ts';
import { cloneDatabase } from '#test/harness/database.ts';
import { claimInLoops, fillQueue, showWorkers } from '#test/suites/queue/load.ts';

let clone: Awaited<ReturnType<typeof cloneDatabase>>;
let open: OpenDatabase;
let hideWorkers: () => Promise<void>;
beforeAll(async () => {
  clone = await cloneDatabase(inject('postgres'), inject('template'));
  open = openDatabase({ config: { ...clone.config, max: 60 } });
  hideWorkers = await showWorkers(clone.config, 60);
});
afterEach(async () => {
  await open.db.deleteFrom('environment').execute();
  await open.db.deleteFrom('organization').execute();
});
afterAll(async () => {
  await hideWorkers();
  await open.close();
  await clone.drop();
});

const LOAD = { organizations: 4, environments: 6, waiting: 5 };
const PER_ORGANIZATION = 2;

describe.each([1, 20, 60])('claims in %i loops at a time', (loops) => {
  test('lose and repeat nothing, keep the order of each environment and the limit of each organization', async () => {
    await fillQueue(open.db, LOAD);
    const claimed = await claimInLoops(open.db, {
      loops,
      perOrganization: PER_ORGANIZATION,
      hold: () => sleep(Math.random() * 5),
    });
    expect(claimed.length).toBe(LOAD.organizations * LOAD.environments * LOAD.waiting);
    expect(new Set(claimed.map(({ id }) => id)).size).toBe(claimed.length);
    const byEnvironment = Map.groupBy(claimed, ({ environmentId }) => environmentId);
    expect(byEnvironment.size).toBe(LOAD.organizations * LOAD.environments);
    for (const numbers of byEnvironment.values()) expect(numbers.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5]);
    expect(Math.max(...claimed.map(({ atOnce }) => atOnce))).toBeLessThanOrEqual(PER_ORGANIZATION);
  });
});

describe('a claim', () => {
  const claim = (limit: number, perOrganization = 2) =>
    claimNext(open.db, {
      workerId: 1,
      nodeId: newId(),
      organizationSlots: perOrganization,
      kinds: ['APPLICATION'],
      limit,
    });
  const firstOf = async () =>
    (
      await sql<{ id: string }>`select organization_id as id from deployment order by created_at limit 1`.execute(
        open.db,
      )
    ).rows[0]!.id;

  test('goes on with the next organization while another claim has the first', async () => {
    await fillQueue(open.db, { organizations: 3, environments: 2, waiting: 1 });
    const first = await firstOf();
    await open.db.transaction().execute(async (other) => {
      await sql`select pg_advisory_xact_lock(7302, hashtext(${first}::uuid::text))`.execute(other);
      const claims = await claim(10);
      expect(claims.map(({ deployment }) => deployment.organization_id)).not.toContain(first);
      expect(claims.length).toBe(4);
    });
    expect((await claim(10)).map(({ deployment }) => deployment.organization_id)).toEqual([first, first]);
  });

  test('takes one of each organization first, people before automatic requests, and no more than the limit', async () => {
    await fillQueue(open.db, { organizations: 3, environments: 4, waiting: 1 });
    await sql`update deployment set automatic = id <> all (
      select distinct on (organization_id) id from deployment order by organization_id, created_at desc)`.execute(
      open.db,
    );
    const claims = await claim(3);
    expect(new Set(claims.map(({ deployment }) => deployment.organization_id)).size).toBe(3);
    expect(claims.map(({ deployment }) => deployment.automatic)).toEqual([false, false, false]);
    expect((await claim(10)).length).toBe(3);
    expect((await claim(10)).length).toBe(0);
  });
});
