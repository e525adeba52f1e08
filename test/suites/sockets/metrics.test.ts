import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { requireMachine } from '#platform/machines/elsewhere.ts';
import { RuntimeError, type Runtime, type RuntimeNode } from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine, type TestEngine } from '#test/harness/engine.ts';
import { connect, refusal } from '#test/harness/sockets.ts';
import { deploy, makeJob } from '#services/kinds/job/job.fixture.ts';

/** Replaces the runtime of a test's calls. */
let override: Partial<Runtime> | undefined;
const node = newId();
const app = useApp(
  {},
  {
    runtimeOf: async () => (override ? ({ name: 'fake', ...override } as Runtime) : (engine.runtime as Runtime)),
    nodeUsage: async (machineId) => {
      requireMachine(node, machineId);
      return {
        at: new Date(),
        instance: node,
        cpuCores: 4,
        load: [0, 0, 0],
        memoryTotalBytes: 2 ** 33,
        memoryAvailableBytes: 2 ** 32,
        cpuMilli: 1000,
        architecture: 'amd64',
        operatingSystem: 'linux',
      };
    },
  },
);
const engine: TestEngine = useEngine(app);

let admin: Actor;
beforeAll(async () => {
  admin = await app.organization();
  await app.db.insertInto('node').values({ id: node, name: 'other' }).execute();
});

const follow = (service: string) => connect(app, '/service/metrics', { service }, { token: admin.token });
const pretend = (runtime: Partial<Runtime>) => {
  override = runtime;
  onTestFinished(() => void (override = undefined));
};

test('/service/metrics sends no instance before the deployment, then the use and limits of each, again every few seconds', async () => {
  const { application } = await makeExample(admin);
  const client = await follow(application.id);
  expect(await client.frame()).toEqual([]);
  ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
  const [instance] = await client.frame((frame) => frame.length === 1);
  const { cpu, memory } = ok(await admin.get(`/application/${application.id}`), 200);
  expect(instance).toEqual({
    pod_name: expect.stringMatching(/^[0-9a-f]{8}-\d+-1$/),
    cpu: { current: cpu / 10, current_percent: 10, limit: cpu, status: 'OK', unit: 'mCPU' },
    memory: { current: memory / 2, current_percent: 50, limit: memory, status: 'OK', unit: 'MiB' },
    storages: [],
  });
  const before = client.frames.length;
  await expect.poll(() => client.frames.length).toBeGreaterThan(before);
  ok(await admin.post(`/application/${application.id}/stop?wait=30`), 200);
  const stopped = client.frames.length;
  await expect.poll(() => client.texts().slice(stopped).at(-1)).toBe('[]');
  client.socket.close();
}, 60_000);

test('/service/metrics of a job has no instances', async () => {
  const job = await makeJob(admin);
  await deploy(job);
  const client = await follow(job.id);
  expect(await client.frame()).toEqual([]);
  client.socket.close();
});

test('/service/metrics says how near to its limits an instance is', async () => {
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
  const one = { cpuLimitMilli: 1000, memoryLimitBytes: 100 * 2 ** 20, startedAt: null, restarts: 0, at: '' };
  pretend({
    metrics: async () => [
      { ...one, instance: 'a', cpuMilli: 790, memoryBytes: 79 * 2 ** 20 },
      { ...one, instance: 'b', cpuMilli: 800, memoryBytes: 95 * 2 ** 20 },
    ],
  });
  const client = await follow(application.id);
  const statuses = (await client.frame()).map((instance: any) => [instance.cpu.status, instance.memory.status]);
  expect(statuses).toEqual([
    ['OK', 'OK'],
    ['WARNING', 'ALERT'],
  ]);
  client.socket.close();
});

test('/service/metrics measures a service once for all who follow it', async () => {
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
  let asked = 0;
  pretend({ metrics: async () => (asked++, []) });
  const clients = await Promise.all([1, 2, 3].map(() => follow(application.id)));
  for (const client of clients) await client.frame();
  expect(asked).toBe(1);
  for (const { socket } of clients) socket.close();
});

test('/service/metrics is refused with 400 where instances cannot be measured or the kind is another, and closes with 1011 where the cluster does not answer', async () => {
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
  const ask = (query: object = {}) =>
    refusal(app, '/service/metrics', { service: application.id, ...query }, { token: admin.token });
  expect((await ask({ service_type: 'JOB' })).body.message).toContain('service_type: must be APPLICATION');
  pretend({});
  expect(await ask()).toMatchObject({ status: 400, body: { message: expect.stringContaining('cannot be measured') } });
  override = { metrics: () => Promise.reject(new RuntimeError('unreachable', 'the engine is away')) };
  const client = await follow(application.id);
  expect(await client.closed).toEqual({ code: 1011, reason: 'The cluster did not do it: the engine is away' });
});

test('/cluster/metrics sends the use of the machine and of those instances that the caller may see', async () => {
  const owner = await app.organization();
  const of = `/organization/${owner.organizationId}`;
  const [seen, hidden] = [await makeExample(owner), await makeExample(owner)];
  for (const { application } of [seen, hidden])
    ok(await owner.post(`/application/${application.id}/deploy?wait=30`), 200);
  const cluster = seen.environment.cluster_id;
  const ask = (token: string) => connect(app, '/cluster/metrics', { cluster }, { token });
  const refused = () => refusal(app, '/cluster/metrics', { cluster }, { token: owner.token });
  const moveTo = (node_id: string | null) =>
    app.db.updateTable('cluster').set({ node_id }).where('id', '=', cluster).execute();
  const elsewhere = newId();
  await app.db.insertInto('node').values({ id: elsewhere, name: 'elsewhere' }).execute();
  await moveTo(null);
  expect(await refused()).toMatchObject({ status: 400, body: { message: expect.stringContaining('on no machine') } });
  await moveTo(elsewhere);
  expect(await refused()).toMatchObject({ status: 502, body: { message: expect.stringContaining(elsewhere) } });
  await moveTo(node);

  const client = await ask(owner.token);
  const frame = await client.frame();
  expect(frame).toMatchObject({ node_pools: [], pvcs: [], nodes: [{ name: node, architecture: 'amd64' }] });
  const [machine] = frame.nodes;
  expect(machine.metrics_usage).toEqual({
    cpu_milli_usage: 1000,
    cpu_percent_usage: 25,
    memory_mib_working_set_usage: 4096,
    memory_percent_working_set_usage: 50,
  });
  expect(machine.resources_capacity).toMatchObject({ cpu_milli: 4000, memory_mib: 8192 });
  const { cpu, memory } = ok(await owner.get(`/application/${seen.application.id}`), 200);
  expect(machine.resources_allocated).toMatchObject({ limit_cpu_milli: 2 * cpu, limit_memory_mib: 2 * memory });
  expect(machine.pods.map((pod: any) => pod.qovery_service_info.service_id)).toEqual([
    seen.application.id,
    hidden.application.id,
  ]);
  expect(machine.pods[0]).toMatchObject({
    namespace: seen.environment.id,
    status_phase: 'RUNNING',
    restart_count: 0,
    cpu_milli_limit: cpu,
    memory_mib_limit: memory,
    metrics_usage: { cpu_milli_usage: cpu / 10, cpu_percent_usage: 10, memory_mib_working_set_usage: memory / 2 },
  });
  client.socket.close();

  const role = ok(
    await owner.post(`${of}/customRole`, {
      name: newId(),
      cluster_permissions: [{ cluster_id: cluster, permission: 'VIEWER' }],
      project_permissions: [{ project_id: seen.project.id, is_admin: true }],
    }),
    201,
  );
  const { token } = ok(await owner.post(`${of}/apiToken`, { name: newId(), role_id: role.id }), 201);
  const limited = await ask(token);
  const text = JSON.stringify(await limited.frame());
  expect(text).toContain(seen.application.id);
  for (const secret of [hidden.application.id, hidden.environment.id, hidden.project.id])
    expect(text).not.toContain(secret);
  limited.socket.close();
}, 60_000);

test('/cluster/metrics of a cluster elsewhere has its nodes, each with the instances on it', async () => {
  const owner = await app.organization();
  const { application, environment } = await makeExample(owner);
  ok(await owner.post(`/application/${application.id}/deploy?wait=30`), 200);
  await app.db.updateTable('cluster').set({ node_id: null }).where('id', '=', environment.cluster_id).execute();
  const size = { cpuMilli: 4000, memoryBytes: 2 ** 33, ephemeralStorageBytes: 2 ** 30, pods: 110 };
  const nodeOf = (name: string, usage: RuntimeNode['usage']): RuntimeNode => ({
    name,
    createdAt: '2026-01-31T00:00:00.000Z',
    architecture: 'amd64',
    operatingSystem: 'linux',
    kernelVersion: '6.1',
    kubeletVersion: 'v1.34.1',
    osImage: 'Debian',
    instanceType: 'm5.large',
    isUnschedulable: false,
    capacity: size,
    allocatable: { ...size, cpuMilli: 3900 },
    usage,
  });
  pretend({
    nodes: async () => [nodeOf('one', null), nodeOf('two', { cpuMilli: 1000, memoryBytes: 2 ** 32 })],
    metrics: async (handle) => (await engine.runtime.metrics!(handle)).map((metrics) => ({ ...metrics, node: 'two' })),
  });
  const client = await connect(app, '/cluster/metrics', { cluster: environment.cluster_id }, { token: owner.token });
  const [one, two] = (await client.frame()).nodes;
  expect(one).toMatchObject({ name: 'one', metrics_usage: null, pods: [] });
  expect(two).toMatchObject({
    name: 'two',
    kubelet_version: 'v1.34.1',
    resources_capacity: { cpu_milli: 4000, memory_mib: 8192, ephemeral_storage_mib: 1024, pods: 110 },
    resources_allocatable: { cpu_milli: 3900 },
    metrics_usage: { cpu_percent_usage: 25, memory_percent_working_set_usage: 50 },
    pods: [{ qovery_service_info: { service_id: application.id } }],
  });
  client.socket.close();
}, 60_000);
