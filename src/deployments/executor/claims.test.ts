import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { chooseAlone, claimNext, renewClaims, type Claim } from '#deployments/executor/claims.ts';
import { newId } from '#kernel/ids.ts';
import { drainNode, undrainNode } from '#platform/installation/drain.ts';
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

describe('a drained node', () => {
  /** An application whose cluster lives on a node that is drained, and the claims of a node. */
  async function onDrained() {
    const admin = await app.organization();
    const { application, environment } = await makeExample(admin);
    const [drained, other] = [newId(), newId()];
    for (const id of [drained, other]) await app.db.insertInto('node').values({ id, name: id }).execute();
    const liveOn = (node_id: string | null) =>
      app.db.updateTable('cluster').set({ node_id }).where('id', '=', environment.cluster_id).execute();
    await liveOn(drained);
    await drainNode(app.db, drained);
    const request = async (action: string) => ok(await admin.post(`/application/${application.id}/${action}`), 200);
    const statusOf = async () => ok(await admin.get(`/application/${application.id}/status`), 200);
    const claim = async (nodeId: string) =>
      (await claimNext(app.db, { workerId: 1, nodeId, organizationSlots: 9, kinds: KINDS, limit: 10 }))
        .filter(({ deployment }) => deployment.organization_id === admin.organizationId)
        .map(({ deployment }) => deployment.action);
    return { admin, application, drained, other, liveOn, request, statusOf, claim };
  }

  test('begins no deployment until the drain ends, and the status of the service says what it waits for', async () => {
    const { drained, other, request, statusOf, claim } = await onDrained();
    await request('deploy');
    expect([await claim(drained), await claim(other)]).toEqual([[], []]);
    expect(await statusOf()).toMatchObject({
      state: 'DEPLOYMENT_QUEUED',
      warnings: [{ code: 'NODE_DRAINED', message: expect.stringContaining('quarterdeck node undrain') }],
    });
    await undrainNode(app.db, drained);
    expect((await statusOf()).warnings).toBeUndefined();
    expect(await claim(drained)).toEqual(['DEPLOY']);
  });

  test('leaves deployments that any node may carry out to the others, and only with all drained do they wait', async () => {
    const { drained, other, liveOn, request, statusOf, claim } = await onDrained();
    await liveOn(null);
    await request('deploy');
    expect(await claim(drained)).toEqual([]);
    expect((await statusOf()).warnings).toBeUndefined();
    const nodes = await app.db.selectFrom('node').select('id').where('drained_at', 'is', null).execute();
    for (const { id } of nodes) await drainNode(app.db, id);
    expect(await claim(other)).toEqual([]);
    expect(await statusOf()).toMatchObject({ warnings: [{ code: 'NODE_DRAINED' }] });
    for (const { id } of nodes) await undrainNode(app.db, id);
    expect(await claim(other)).toEqual(['DEPLOY']);
  });

  test.each(['stop', 'uninstall'])('carries out what only takes down: %s', async (action) => {
    const { drained, request, statusOf, claim } = await onDrained();
    await request(action);
    expect((await statusOf()).warnings).toBeUndefined();
    expect(await claim(drained)).toEqual([action.toUpperCase()]);
  });

  test('carries out the deletion of a service whose deployment waits, which is cancelled', async () => {
    const { admin, application, drained, request, claim } = await onDrained();
    await request('deploy');
    ok(await admin.delete(`/application/${application.id}`), 204);
    expect(await claim(drained)).toEqual(['DELETE']);
  });

  test('takes over what it began before its process ended, so that it is finished', async () => {
    const { drained, request, claim } = await onDrained();
    await undrainNode(app.db, drained);
    await request('deploy');
    expect(await claim(drained)).toEqual(['DEPLOY']);
    await drainNode(app.db, drained);
    // No process holds the liveness lock of worker 1: the deployment is left behind.
    expect(await claim(drained)).toEqual(['DEPLOY']);
  });
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
