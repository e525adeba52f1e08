import { pino } from 'pino';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { MACHINE_RECORDS } from '#clusters/machine-records.ts';
import { registerNodeGauges } from '#clusters/node-gauges.ts';
import { listNodes } from '#clusters/nodes.ts';
import { RunningWatcher } from '#deployments/watchers/running-watcher.ts';
import { newId } from '#kernel/ids.ts';
import { drainNode } from '#platform/installation/drain.ts';
import { startHeartbeat } from '#platform/installation/heartbeat.ts';
import { noticeNodes } from '#platform/installation/loss.ts';
import { sql } from '#platform/database/index.ts';
import { START_AGAIN } from '#services/capabilities/service/rollback/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
const engine = useEngine(app);

/** Makes a node that was seen last at a time before now, such as `3 minutes`. */
async function makeNode(ago: string, name = newId()): Promise<{ id: string; name: string }> {
  const id = newId();
  await sql`insert into node (id, name, seen_at) values (${id}, ${name}, now() - ${ago}::interval)`.execute(app.db);
  return { id, name };
}

const setSeen = (id: string, ago: string) =>
  sql`update node set seen_at = now() - ${ago}::interval where id = ${id}`.execute(app.db);

const found = async (id: string) => (await listNodes(app.db)).find((node) => node.id === id);

/** Looks once for lost nodes, and returns what is logged of a node. */
async function notice(id: string): Promise<string[]> {
  const lines: Record<string, string>[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  // Two processes may look at the same moment.
  await Promise.all([noticeNodes({ db: app.db, log }), noticeNodes({ db: app.db, log })]);
  return lines.filter((line) => line.nodeId === id).map((line) => line.msg!);
}

test('a node without signs of life for two minutes is lost, which is logged once, as is its return', async () => {
  const { id } = await makeNode('90 seconds');
  expect([await notice(id), (await found(id))?.isLost]).toEqual([[], false]);
  await setSeen(id, '3 minutes');
  expect(await notice(id)).toEqual([expect.stringContaining('a node is lost')]);
  expect([await notice(id), (await found(id))?.isLost]).toEqual([[], true]);
  await setSeen(id, '0 seconds');
  expect(await notice(id)).toEqual(['a lost node is back']);
  expect([await notice(id), (await found(id))?.isLost]).toEqual([[], false]);
});

test('a process shows that its node is there when it starts, also if the node was forgotten', async () => {
  const { id } = await makeNode('1 hour');
  await (
    await startHeartbeat(app.platform, id)
  )();
  expect(await found(id)).toMatchObject({ isLost: false });
  await app.db.deleteFrom('node').where('id', '=', id).execute();
  await (
    await startHeartbeat(app.platform, id)
  )();
  expect(await found(id)).toMatchObject({ isLost: false });
});

test('a process with temporary data takes its node along when it ends, unless that is drained', async () => {
  const [{ id }, drained] = [await makeNode('0 seconds'), await makeNode('0 seconds')];
  await drainNode(app.db, drained.id);
  for (const one of [id, drained.id]) await (await startHeartbeat(app.platform, one, true))();
  expect([await found(id), (await found(drained.id))?.id]).toEqual([undefined, drained.id]);
});

test('the metrics show each node with whether it is there and whether it is drained', async () => {
  const [lost, there] = [await makeNode('3 minutes', 'm-lost'), await makeNode('0 seconds', 'm-there')];
  await drainNode(app.db, there.id);
  const registry = new Registry();
  registerNodeGauges(registry, app.db);
  const lines = (await registry.metrics()).split('\n').filter((line) => line.includes('node="m-'));
  expect(lines).toEqual([
    `quarterdeck_node_up{node="m-lost",id="${lost.id}"} 0`,
    `quarterdeck_node_up{node="m-there",id="${there.id}"} 1`,
    `quarterdeck_node_drained{node="m-lost",id="${lost.id}"} 0`,
    `quarterdeck_node_drained{node="m-there",id="${there.id}"} 1`,
  ]);
});

test('services of a lost node keep what is known of them and show UNAVAILABLE, their requests say what they wait for', async () => {
  const admin = await app.organization();
  const { application, environment } = await makeExample(admin);
  const deployed = ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
  expect(deployed).toMatchObject({ state: 'DEPLOYED' });
  const status = async () => ok(await admin.get(`/application/${application.id}/status`), 200);
  const { id } = await makeNode('3 minutes');
  await app.db
    .updateTable('cluster')
    .set({ node_id: id, reached_at: sql`now() - interval '4 minutes'` })
    .where('id', '=', environment.cluster_id)
    .execute();
  const { state, status_details, service_deployment_status, execution_id } = await status();
  expect(state).toBe('UNAVAILABLE');
  expect({ status_details, service_deployment_status, execution_id }).toEqual({
    status_details: deployed.status_details,
    service_deployment_status: 'UP_TO_DATE',
    execution_id: deployed.execution_id,
  });
  const service = await app.db.selectFrom('service').select('wanted').where('id', '=', application.id).execute();
  expect(service).toEqual([{ wanted: 'running' }]);

  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  expect(await status()).toMatchObject({ state: 'DEPLOYMENT_QUEUED', warnings: [{ code: 'NODE_LOST' }] });
  expect(await found(id)).toMatchObject({ isLost: true, clusters: 1, running: 0, waiting: 1 });
  const { deployment_request_id: waiting } = await status();
  ok(await admin.post(`/deploymentQueue/${waiting}/cancelDeployment`, {}), 200);

  await new RunningWatcher({
    platform: app.platform,
    runtimes: { runtimeOf: async () => engine.runtime },
    nodeId: id,
    machine: MACHINE_RECORDS,
    again: START_AGAIN,
  }).look();
  expect((await status()).state).not.toBe('UNAVAILABLE');
});
