import { afterEach, describe, expect, test } from 'vitest';
import pg from 'pg';
import { pino } from 'pino';
import { createMetrics } from '#app/operations.ts';
import { claimNext } from '#deployments/executor/claims.ts';
import { listReported } from '#deployments/queue/queries.ts';
import { watchQueue } from '#deployments/queue/watchdog.ts';
import { newId } from '#kernel/ids.ts';
import { drainNode, undrainNode } from '#platform/installation/drain.ts';
import type { Platform } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import { lockLiveness, workerName } from '#platform/database/locks.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeRandom, seedOf, type Random } from '#test/harness/random.ts';
import { exampleBody } from '#test/harness/engine.ts';
import {
  claimAll,
  countOpen,
  endAll,
  randomRequest,
  requestOfCluster,
  requestOfEnvironment,
  Session,
  type Place,
} from '#test/suites/queue/interleavings.ts';

const app = useApp();
const ROUNDS = process.env.SOAK ? 400 : 30;

afterEach(async () => {
  await app.db.deleteFrom('cluster_work').execute();
  await app.db.deleteFrom('deployment').execute();
});

/** Creates a cluster with two environments of two applications each. */
async function makePlace(admin: Actor): Promise<Place> {
  const { results } = ok(await admin.get(`/organization/${admin.organizationId}/cluster`), 200);
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: `p ${newId()}` }), 201);
  const environments = [];
  for (const name of ['one', 'two']) {
    const body = { name, mode: 'DEVELOPMENT', cluster_id: results[0].id };
    const { id } = ok(await admin.post(`/project/${project.id}/environment`, body), 201);
    const services: string[] = [];
    for (const service of ['a', 'b'])
      services.push(ok(await admin.post(`/environment/${id}/application`, exampleBody({ name: service })), 201).id);
    environments.push({ id, services });
  }
  return { organizationId: admin.organizationId, clusterId: results[0].id, environments };
}

/** Runs everything until nothing more begins. */
async function drain(place: Place): Promise<void> {
  for (;;) {
    await endAll(app.db, place.organizationId);
    if ((await claimAll(app.db)) === 0) return;
  }
}

/** Mixes the beginnings, locks and commits of requests, with workers that claim in between. */
async function interleave(random: Random, place: Place): Promise<void> {
  const sessions: Session[] = [];
  for (let round = 0; round < 4; round++) {
    const session = new Session(app.context, randomRequest(random, place));
    await session.begun();
    sessions.push(session);
  }
  const open = () => sessions.filter((session) => !session.ended);
  while (open().length > 0) {
    const free = open().filter((session) => session.isFree);
    if (free.length > 0) await random.pick(free).step(app.db);
    // A commit lets another session proceed, which soon reaches its next step.
    else
      await expect
        .poll(() => open().length === 0 || open().some((session) => session.isFree), { interval: 2 })
        .toBe(true);
    if (random.below(6) === 0) await claimAll(app.db, 1);
    if (random.below(6) === 0) await endAll(app.db, place.organizationId);
  }
  await Promise.all(sessions.map((session) => session.done));
}

describe('the queue of a cluster', () => {
  test('does not stand still after a cluster stop and two deploys whose transactions began in another order', async () => {
    const admin = await app.organization();
    const place = await makePlace(admin);
    const [{ id, services }] = place.environments as [Place['environments'][0]];
    // The transaction of the third request begins first, and enters its environment's queue last.
    const late = new Session(app.context, requestOfEnvironment(place, id, 'DEPLOY', [services[1]!]));
    await late.begun();
    const stop = new Session(app.context, requestOfCluster(place, 'STOP'));
    await stop.begun();
    const early = new Session(app.context, requestOfEnvironment(place, id, 'DEPLOY', [services[0]!]));
    await early.begun();
    for (const session of [stop, early, late]) {
      await session.step(app.db);
      await session.step(app.db);
      await session.done;
    }
    await drain(place);
    expect(await countOpen(app.db, place.organizationId)).toBe(0);
  });

  test('comes to its end after random interleavings of requests for cluster, environments and services', async () => {
    const seed = seedOf();
    const admin = await app.organization();
    const place = await makePlace(admin);
    for (let round = 0; round < ROUNDS; round++) {
      await interleave(makeRandom(seed + round), place);
      await drain(place);
      expect(await countOpen(app.db, place.organizationId), `SEED=${seed + round}`).toBe(0);
    }
  });
});

describe('the watchdog of the queue', () => {
  const findings = () => app.db.selectFrom('queue_finding').selectAll().orderBy('id').execute();
  const watch = (log: Platform['log'], seconds = 0) => watchQueue({ ...app.platform, log }, seconds);
  const makeLog = () => {
    const lines: string[] = [];
    return { lines, log: pino({ level: 'error' }, { write: (line) => void lines.push(JSON.parse(line).msg) }) };
  };

  test('reports a circle once, in the log, the metrics and the operator’s view, until it is gone', async () => {
    const admin = await app.organization();
    const place = await makePlace(admin);
    const [{ id, services }] = place.environments as [Place['environments'][0]];
    for (const serviceId of services) ok(await admin.post(`/application/${serviceId}/deploy`), 200);
    ok(await admin.post(`/organization/${admin.organizationId}/cluster/${place.clusterId}/stop`), 200);
    const { lines, log } = makeLog();
    await watch(log, 60);
    expect(lines).toEqual([]);
    // Order of an older release: the second deployment before the work, the first one after it.
    await app.db
      .updateTable('deployment')
      .set({ queue_number: sql`1000 - 10 * number` })
      .where('environment_id', '=', id)
      .execute();
    await app.db.updateTable('cluster_work').set({ number: 985 }).where('cluster_id', '=', place.clusterId).execute();
    await watch(log, 60);
    await watch(log, 60);
    expect(await findings()).toMatchObject([{ kind: 'CYCLE', cluster_id: place.clusterId }]);
    expect(lines).toEqual([expect.stringContaining('in a circle')]);
    expect(lines[0]).toContain('STOP of the cluster');
    const metrics = createMetrics(app.db, app.platform.settings);
    expect(await metrics.registry.metrics()).toContain('quarterdeck_queue_findings{kind="CYCLE"} 1');
    expect(await listReported(app.db)).toMatchObject([{ kind: 'CYCLE', message: lines[0] }]);
    expect(await claimAll(app.db)).toBe(0);
    ok(await admin.post(`/environment/${id}/cancelDeployment`), 200);
    await watch(log, 60);
    expect((await findings()).map(({ kind }) => kind)).not.toContain('CYCLE');
  });

  test('reports a head that nothing holds and nobody claims, after a while and with the machine that is away', async () => {
    const admin = await app.organization();
    const place = await makePlace(admin);
    const node = newId();
    await app.db
      .insertInto('node')
      .values({ id: node, name: 'far away', seen_at: new Date(0) })
      .execute();
    await app.db.updateTable('cluster').set({ node_id: node }).where('id', '=', place.clusterId).execute();
    const [{ id, services }] = place.environments as [Place['environments'][0]];
    for (const serviceId of services) ok(await admin.post(`/application/${serviceId}/deploy`), 200);
    const { lines, log } = makeLog();
    await watch(log, 60);
    expect(lines).toEqual([]);
    expect(await findings()).toMatchObject([{ kind: 'UNCLAIMED', reported_at: null, cluster_id: place.clusterId }]);
    await watch(log);
    expect(lines).toEqual([expect.stringMatching(/deployment 1 of environment one can begin.*far away/)]);
    ok(await admin.post(`/cluster/${place.clusterId}/lock`, { reason: 'x' }), 200);
    await watch(log);
    expect(await findings(), 'a lock holds the queue on purpose').toEqual([]);
    expect(id).toBeDefined();
  });

  test('reports no head whose workers are all busy, and one that waits though a worker of its machine is free', async () => {
    const admin = await app.organization();
    const place = await makePlace(admin);
    const [busy, other] = [newId(), newId()];
    for (const id of [busy, other]) await app.db.insertInto('node').values({ id, name: id }).execute();
    await app.db.updateTable('cluster').set({ node_id: busy }).where('id', '=', place.clusterId).execute();
    const workers: pg.Client[] = [];
    const live = async (worker: number, node: string, slots: number) => {
      const client = new pg.Client({ ...app.databaseConfig, application_name: workerName(node, slots) });
      workers.push(client);
      await client.connect();
      await lockLiveness(client, worker);
    };
    try {
      await live(901, busy, 1);
      await live(902, other, 8);
      for (const { id } of place.environments) ok(await admin.post(`/environment/${id}/deploy`), 200);
      const [first] = await claimNext(app.db, {
        workerId: 901,
        nodeId: busy,
        organizationSlots: 100,
        kinds: ['APPLICATION'],
        limit: 1,
      });
      expect(first!.deployment.worker_id).toBe(901);
      const { lines, log } = makeLog();
      await watch(log);
      expect(lines).toEqual([]);
      await live(903, busy, 1);
      await watch(log);
      expect(lines).toEqual([expect.stringContaining('can begin, but no worker claims it')]);
    } finally {
      await Promise.all(workers.map((client) => client.end()));
    }
  });

  test('reports no head that waits for the end of a drain', async () => {
    const admin = await app.organization();
    const place = await makePlace(admin);
    const node = newId();
    await app.db
      .insertInto('node')
      .values({ id: node, name: node, seen_at: new Date(0) })
      .execute();
    await app.db.updateTable('cluster').set({ node_id: node }).where('id', '=', place.clusterId).execute();
    ok(await admin.post(`/environment/${place.environments[0]!.id}/deploy`), 200);
    await drainNode(app.db, node);
    const { lines, log } = makeLog();
    await watch(log);
    expect(lines).toEqual([]);
    await undrainNode(app.db, node);
    await watch(log);
    expect(lines).toHaveLength(1);
  });

  test('reports a deployment whose worker is gone and that nobody takes over', async () => {
    const admin = await app.organization();
    const place = await makePlace(admin);
    ok(await admin.post(`/environment/${place.environments[0]!.id}/deploy`), 200);
    expect(await claimAll(app.db)).toBe(1);
    const { lines, log } = makeLog();
    await watch(log);
    expect(lines).toEqual([]);
    await app.db
      .updateTable('deployment')
      .set({ lease_until: new Date(0) })
      .execute();
    await watch(log);
    expect(lines).toHaveLength(1);
  });
});
