import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { FORMAT } from '#deployments/model/snapshot.ts';
import { stopProxy } from '#runtimes/proxy/builtin/index.ts';
import { HttpActor } from '#test/crash/harness/actor.ts';
import { setFaults } from '#test/crash/harness/faults.ts';
import { startDyingWorker } from '#test/crash/harness/lane.ts';
import { useMachine } from '#test/crash/harness/machine.ts';
import type { ChildOfTest } from '#test/crash/harness/process.ts';
import { until } from '#test/crash/harness/until.ts';
import { findFaults } from '#test/crash/harness/world.ts';

const machine = useMachine();
const children: ChildOfTest[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) if (child.running) await child.kill();
});

/** Starts a worker of another version, which supports these formats. */
function startWorker(formats: number[]): ChildOfTest {
  const child = startDyingWorker(machine, 0, { formats });
  children.push(child);
  return child;
}

const statusOf = async (deployment: string) =>
  machine.db
    .selectFrom('deployment')
    .select(['status', 'outcome', 'worker_id'])
    .where('id', '=', deployment)
    .executeTakeFirstOrThrow();

test('two versions side by side: each carries out the formats that it knows, and leaves the others to those who do', async () => {
  await machine.start('api', { role: 'api' });
  const actor = await machine.organization('upgrade');
  /** Inserts a deployment as a version with this format requests it. */
  const requested = async (format: number): Promise<string> => {
    const environment = await actor.environment(`format ${format}`);
    const application = await actor.application(environment, 'hello');
    const answer = await actor.ask('POST', `/application/${application}/deploy`, 200);
    await machine.db.updateTable('deployment').set({ format }).where('id', '=', answer.deployment_request_id).execute();
    return answer.deployment_request_id;
  };
  const [before, now, after] = [await requested(FORMAT - 1), await requested(FORMAT), await requested(FORMAT + 1)];
  setFaults(machine.dataDir, { delayMs: { submit: 2_000 } });

  const old = startWorker([FORMAT, FORMAT - 1]);
  for (const id of [before, now])
    await until('the older version has done what it knows', async () => (await statusOf(id)).outcome === 'SUCCESS');
  expect(await statusOf(after)).toMatchObject({ status: 'WAITING' });

  const first = startWorker([FORMAT + 1, FORMAT]);
  await until('the newer version is at what only it knows', async () => (await statusOf(after)).worker_id !== null);
  const { worker_id } = await statusOf(after);
  await first.kill();
  // The older worker, which still runs, must not take it over.
  startWorker([FORMAT + 1, FORMAT]);
  await until('it has ended', async () => (await statusOf(after)).outcome === 'SUCCESS');
  expect(old.running).toBe(true);
  expect(worker_id).not.toBeNull();
  setFaults(machine.dataDir, {});
  expect(await findFaults(machine)).toEqual([]);
  await machine.processes[0]!.terminate();
});

/** Returns the answer of a service by its name, over the machine's proxy. */
const reach = (port: string, host: string): Promise<{ status: number; body: string }> =>
  new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: '/', headers: { host } }, (response) => {
      void text(response).then((body) => resolve({ status: response.statusCode!, body }));
    });
    sent.on('error', reject).end();
  });

test('after a reboot of the machine everything that should run serves again by itself', async () => {
  const all = await machine.start('all', { role: 'all' });
  // The organization of the first start has its cluster on this machine.
  const token = readFileSync(path.join(machine.dataDir, 'admin-token'), 'utf8').trim();
  const account = new HttpActor('', token, machine.source.url, () => machine.processes.flatMap(({ url }) => url ?? []));
  const { id } = await account.ask('GET', '/organization', 200);
  const actor = new HttpActor(id, token, machine.source.url, () => machine.processes.flatMap(({ url }) => url ?? []));
  const cluster = (await actor.ask('GET', `/organization/${id}/cluster`, 200)).results[0];
  await until('the cluster is deployed', async () => (await clusterState(actor, cluster.id)) === 'DEPLOYED');
  const environment = await actor.environment('rebooted');
  const application = await actor.application(environment, 'hello');
  expect((await actor.ask('POST', `/application/${application}/deploy?wait=30`, 200)).state).toBe('DEPLOYED');
  const port = machine.environment['QUARTERDECK_PROXY_PORT']!;
  const host = `app-z${application.slice(0, 8)}.localhost`;
  await until('it serves', async () => (await reach(port, host)).status === 200);

  await all.kill();
  await stopProxy(path.join(machine.dataDir, 'proxy'));
  const folder = path.join(machine.dataDir, 'fake');
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.json'))) {
    const file = path.join(folder, name);
    const service = JSON.parse(readFileSync(file, 'utf8'));
    // The same pid and start time with another boot id belong to another process.
    service.owner = { ...service.owner, pid: process.pid, bootId: '00000000-0000-0000-0000-000000000000' };
    writeFileSync(file, JSON.stringify(service));
  }
  await machine.again(all);
  await until('it serves again', async () => (await reach(port, host).catch(() => undefined))?.status === 200, 30_000);
  expect(await findFaults(machine)).toEqual([]);
});

const clusterState = async (actor: HttpActor, cluster: string): Promise<string> =>
  (await actor.ask('GET', `/organization/${actor.organizationId}/cluster`, 200)).results.find(
    (one: { id: string }) => one.id === cluster,
  ).status;
