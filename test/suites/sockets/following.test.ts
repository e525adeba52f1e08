import { beforeAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine, type TestEngine } from '#test/harness/engine.ts';
import { connect, listen, refusal } from '#test/harness/sockets.ts';
import { deploy, makeJob, order } from '#services/kinds/job/job.fixture.ts';
import type { Runtime } from '#runtimes/runtime.ts';

/** Replaces the runtime of a test's calls. */
let override: Partial<Runtime> | undefined;
const statements: string[] = [];
const app = useApp(
  {},
  { runtimeOf: async () => (override ? ({ ...override } as Runtime) : (engine.runtime as Runtime)) },
  (text) => void statements.push(text),
);
const engine: TestEngine = useEngine(app);

let admin: Actor;
beforeAll(async () => void (admin = await app.organization()));

const GROUPS = [
  'agentic_workflows',
  'applications',
  'argocd_apps',
  'containers',
  'databases',
  'helms',
  'jobs',
  'terraforms',
];

test('/service/status sends all arrays at once and again when a deployment moves a service, and nothing twice', async () => {
  const { environment, application } = await makeExample(admin);
  const client = await connect(app, '/service/status', { environment: environment.id }, { token: admin.token });
  const first = await client.frame();
  expect(Object.keys(first).toSorted()).toEqual([...GROUPS, 'environment'].toSorted());
  expect(first.applications).toMatchObject([{ id: application.id, state: 'READY' }]);
  expect(first).toEqual(ok(await admin.get(`/environment/${environment.id}/statuses`), 200));
  ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
  await client.frame((frame) => frame.applications[0].state === 'DEPLOYED' && frame.environment.state === 'DEPLOYED');
  expect(client.texts()).toEqual(client.texts().filter((text, at, all) => text !== all[at - 1]));
  client.socket.close();
});

test.each(['/service/status', '/deployment/status', '/deployment/logs'])(
  '%s reads from one snapshot of the database',
  async (path) => {
    const { environment, application } = await makeExample(admin);
    ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
    statements.length = 0;
    const client = await connect(app, path, { environment: environment.id }, { token: admin.token });
    await client.frame();
    expect(statements.join('\n')).toMatch(/isolation level repeatable read/i);
    client.socket.close();
  },
);

test('/service/status tells of an edit, which makes the service out of date', async () => {
  const { environment, application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
  const client = await connect(app, '/service/status', { environment: environment.id }, { token: admin.token });
  await client.frame((frame) => frame.applications[0].service_deployment_status === 'UP_TO_DATE');
  ok(await admin.put(`/application/${application.id}`, { ...application, cpu: 700 }), 200);
  await client.frame((frame) => frame.applications[0].service_deployment_status === 'OUT_OF_DATE');
  client.socket.close();
});

test('/deployment/status sends the stages', async () => {
  const { environment, application } = await makeExample(admin);
  const client = await connect(app, '/deployment/status', { environment: environment.id }, { token: admin.token });
  await client.frame();
  ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
  const stage = (frame: any) => frame.stages.find((one: any) => one.applications.length > 0);
  const frame = await client.frame((one) => stage(one)?.stage.status === 'DONE');
  expect(stage(frame).applications[0]).toMatchObject({ id: application.id, state: 'DEPLOYED' });
  client.socket.close();
});

test('/deployment/logs sends each line of a deployment once, goes on with the next one, and finds one by its id', async () => {
  const { environment, application } = await makeExample(admin);
  const client = await connect(app, '/deployment/logs', { environment: environment.id }, { token: admin.token });
  const lines = () => client.texts().flatMap((text) => JSON.parse(text));
  const logOf = async (version: string) =>
    ok(await admin.get(`/environment/${environment.id}/logs?version=${version}`), 200);
  for (const version of [`${environment.id}-1`, `${environment.id}-2`]) {
    ok(await admin.post(`/environment/${environment.id}/redeploy?wait=30`), 200);
    const all = await logOf(version);
    expect(all.length).toBeGreaterThan(0);
    await expect.poll(() => lines().filter((line) => line.details.execution_id === version).length).toBe(all.length);
    expect(lines().filter((line) => line.details.execution_id === version)).toEqual(all);
  }
  client.socket.close();
  const of = { environment: environment.id, version: `${environment.id}-1` };
  const first = await connect(app, '/deployment/logs', of, { token: admin.token });
  const [line] = await first.frame();
  expect(line.details.execution_id).toBe(of.version);
  first.socket.close();
  const none = { environment: environment.id, version: `${environment.id}-9` };
  expect(await refusal(app, '/deployment/logs', none, { token: admin.token })).toMatchObject({ status: 404 });
  expect(application.id).toBeDefined();
});

test('/service/logs waits for the first deployment, sends what is there, and new lines as they come', async () => {
  const { application } = await makeExample(admin);
  const client = await connect(app, '/service/logs', { service: application.id }, { token: admin.token });
  ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
  const first = await client.frame((frame) => frame.message.startsWith('listening'));
  expect(first).toEqual({
    created_at: expect.any(Number),
    message: expect.any(String),
    pod_name: expect.any(String),
    version: expect.stringMatching(/^\d+$/),
  });
  expect(Math.abs(first.created_at - Date.now())).toBeLessThan(120_000);
  const late = await connect(app, '/service/logs', { service: application.id }, { token: admin.token });
  expect((await late.frame()).message).toBe(first.message);
  const chosen = await connect(
    app,
    '/service/logs',
    { service: application.id, text: 'LISTENING' },
    { token: admin.token },
  );
  expect((await chosen.frame()).message).toMatch(/^listening/);
  chosen.socket.close();
  ok(await admin.post(`/application/${application.id}/redeploy?wait=30`), 200);
  for (const one of [client, late])
    await one.frame((frame) => frame.message.startsWith('listening') && frame.version !== first.version);
  client.socket.close();
  late.socket.close();
});

test('/service/logs of a job sends the lines of its newest run and of the next one', async () => {
  const job = await makeJob(admin);
  order(engine, job, { lines: ['one'] }, { lines: ['two'] });
  const client = await connect(app, '/service/logs', { service: job.id }, { token: admin.token });
  const second = await connect(app, '/service/logs', { service: job.id, text: 'TWO' }, { token: admin.token });
  await deploy(job);
  await client.frame((frame) => frame.message === 'one');
  await deploy(job);
  await client.frame((frame) => frame.message === 'two');
  expect(
    client
      .texts()
      .map((text) => JSON.parse(text).message)
      .filter((text) => text === 'one'),
  ).toEqual(['one']);
  expect((await second.frame()).message).toBe('two');
  second.socket.close();
  client.socket.close();
});

test('/service/logs reads no further ahead of a client that does not read, and ends when it leaves', async () => {
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
  let read = 0;
  let ended = false;
  const line = { at: new Date().toISOString(), instance: 'i', generation: 1, stream: 'stdout' as const };
  override = {
    // eslint-disable-next-line require-yield
    async *logs(_handle, { follow, signal }) {
      try {
        yield { ...line, text: 'x' };
        while (follow && !signal.aborted) {
          read++;
          yield { ...line, text: 'x'.repeat(64 * 1024) };
        }
      } finally {
        ended = follow;
      }
    },
  };
  try {
    await listen(app);
    const client = await connect(app, '/service/logs', { service: application.id }, { token: admin.token });
    client.socket.pause();
    let before = -1;
    await expect
      .poll(
        () => {
          const stands = read > 0 && read === before;
          before = read;
          return stands;
        },
        { interval: 300 },
      )
      .toBe(true);
    // Only what the kernel buffers for both ends.
    expect(read).toBeLessThan(400);
    client.socket.terminate();
    await expect.poll(() => ended).toBe(true);
  } finally {
    override = undefined;
  }
});

test('/service/logs closes with 1011 where the cluster does not answer, which may be tried again', async () => {
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
  override = {
    // eslint-disable-next-line require-yield
    async *logs() {
      throw new Error('the engine is away');
    },
  };
  try {
    const client = await connect(app, '/service/logs', { service: application.id }, { token: admin.token });
    expect(await client.closed).toEqual({
      code: 1011,
      reason: 'The log cannot be read from the cluster: the engine is away',
    });
  } finally {
    override = undefined;
  }
});

test('/cluster/status sends the status at once and again when the cluster is locked; /cluster/nodes one frame', async () => {
  const [cluster] = ok(await admin.get(`/organization/${admin.organizationId}/cluster`), 200).results;
  const query = { organization: admin.organizationId, cluster: cluster.id };
  const client = await connect(app, '/cluster/status', query, { token: admin.token });
  expect(await client.frame()).toEqual(
    ok(await admin.get(`/organization/${admin.organizationId}/cluster/${cluster.id}/status`), 200),
  );
  ok(await admin.post(`/cluster/${cluster.id}/lock`, { reason: 'test' }), 200);
  await client.frame((frame) => frame.cluster_lock?.reason === 'test');
  expect(client.frames).toHaveLength(2);
  client.socket.close();
  ok(await admin.delete(`/cluster/${cluster.id}/lock`), 204);
  const nodesOf = async (path: string) => {
    const nodes = await connect(app, path, query, { token: admin.token });
    expect((await nodes.closed).code).toBe(1000);
    return nodes.texts().map((text) => JSON.parse(text));
  };
  for (const path of ['/cluster/nodes', '/cluster/node']) expect(await nodesOf(path)).toEqual([{ Nodes: [] }]);
  // Organizations see the ids of machines, but no names.
  const node = { id: newId(), name: 'name-of-the-machine' };
  await app.db.insertInto('node').values(node).execute();
  const moveTo = (node_id: string | null) =>
    app.db
      .updateTable('cluster')
      .set({ node_id })
      .where('organization_id', '=', admin.organizationId)
      .where('id', '=', cluster.id)
      .execute();
  await moveTo(node.id);
  for (const path of ['/cluster/nodes', '/cluster/node'])
    expect(await nodesOf(path)).toEqual([{ Nodes: [{ Name: node.id }] }]);
  const metrics = `/cluster/${cluster.id}/metrics?endpoint=query&query=node_load1`;
  expect(ok(await admin.get(metrics), 502).message).toContain(`on the machine ${node.id}`);
  await moveTo(null);
});
