import { afterEach, describe, expect, test, vi } from 'vitest';
import { claimNext } from '#deployments/executor/claims.ts';
import { newId } from '#kernel/ids.ts';
import { drainNode, undrainNode } from '#platform/installation/drain.ts';
import { sql } from '#platform/database/index.ts';
import { ClaimLost, Lease } from '#platform/work/index.ts';
import { createClusterWorker } from '#clusters/work/worker.ts';
import { runWork, type ClusterReport, type ClusterToCheck } from '#clusters/work/run.ts';
import { insertCluster } from '#resources/cluster/index.ts';
import { claimWork, CLUSTER_WORK_TABLE, endWork } from '#resources/cluster/work/claims.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
const KINDS = ['APPLICATION'];
const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  await app.db.deleteFrom('cluster_work').execute();
});

const FINE: ClusterReport = { ok: true, description: 'engine 1.0', limits: ['No memory limits here.'] };

/** A worker of a node; `answer` is what the runtime says. */
function work(
  answer: ClusterReport | ((cluster: ClusterToCheck) => Promise<ClusterReport>),
  options: { nodeId?: string; checkTimeoutMs?: number; leaseSeconds?: number } = {},
) {
  const checkRuntime = vi.fn(async (cluster: ClusterToCheck) =>
    typeof answer === 'function' ? answer(cluster) : answer,
  );
  const worker = createClusterWorker({
    platform: app.platform,
    nodeId: options.nodeId ?? newId(),
    pollMs: 50,
    ...options,
    checkRuntime,
  });
  worker.start();
  stops.push(() => worker.stop());
  return { checkRuntime, stop: () => worker.stop() };
}

async function makeCluster(admin: Actor, runtime = 'fake') {
  const body = { name: `c ${newId()}`, region: 'here', cloud_provider: 'ON_PREMISE', runtime };
  const cluster = ok(await admin.post(`/organization/${admin.organizationId}/cluster`, body), 201);
  return { ...cluster, url: `/organization/${admin.organizationId}/cluster/${cluster.id}` };
}

const deployAndWait = async (admin: Actor, url: string, query = '') =>
  ok(await admin.post(`${url}/deploy?wait=40${query}`), 200);

const clusterOf = async (admin: Actor, id: string) =>
  ok(await admin.get(`/organization/${admin.organizationId}/cluster`), 200).results.find((one: any) => one.id === id);

const eventsOf = async (id: string) =>
  (await app.db.selectFrom('audit_event').selectAll().where('target_id', '=', id).orderBy('id').execute()).map(
    (event) => event.event_type,
  );

/** Requests a deployment that no worker carries out. */
const queue = async (admin: Actor, url: string) => ok(await admin.post(`${url}/deploy`), 200);

describe('deploying a cluster', () => {
  test('is queued before the answer, asks the runtime, and ends DEPLOYED with its version, log, events', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    expect(await queue(admin, cluster.url)).toMatchObject({
      cluster_id: cluster.id,
      status: 'DEPLOYMENT_QUEUED',
      is_deployed: false,
      reason: 'UNSPECIFIED',
      cluster_lock: null,
    });
    const { checkRuntime } = work(FINE);
    const status = await deployAndWait(admin, cluster.url);
    expect(status).toMatchObject({ status: 'DEPLOYED', is_deployed: true, last_deployment_date: expect.any(String) });
    expect(checkRuntime).toHaveBeenCalledWith(
      {
        id: cluster.id,
        organizationId: admin.organizationId,
        name: cluster.name,
        runtime: 'fake',
        nodeId: null,
        kubeconfig: null,
      },
      expect.any(AbortSignal),
    );
    expect(await clusterOf(admin, cluster.id)).toMatchObject({
      status: 'DEPLOYED',
      deployment_status: 'UP_TO_DATE',
      version: 'engine 1.0',
    });
    const { results } = ok(await admin.get(`${cluster.url}/logs`), 200);
    expect(results.map((line: any) => [line.step, line.message.safe_message]).slice(0, 5)).toEqual([
      ['LoadConfiguration', expect.stringContaining(cluster.name)],
      ['ValidateSystemRequirements', 'Asking the fake runtime.'],
      ['RetrieveClusterConfig', 'engine 1.0'],
      ['RetrieveClusterResources', 'No memory limits here.'],
      ['Created', expect.stringContaining('deployed')],
    ]);
    expect((await eventsOf(cluster.id)).slice(0, 4)).toEqual([
      'CREATE',
      'TRIGGER_DEPLOY',
      'DEPLOY_QUEUED',
      expect.any(String),
    ]);
    expect((await eventsOf(cluster.id)).at(-1)).toBe('DEPLOYED');
  });

  test('shows OUT_OF_DATE once its configuration has moved', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    work(FINE);
    await deployAndWait(admin, cluster.url);
    const body = { name: cluster.name, region: 'there', cloud_provider: 'ON_PREMISE' };
    expect(ok(await admin.put(cluster.url, body), 200)).toMatchObject({
      status: 'DEPLOYED',
      deployment_status: 'OUT_OF_DATE',
    });
    await deployAndWait(admin, cluster.url);
    expect(await clusterOf(admin, cluster.id)).toMatchObject({ deployment_status: 'UP_TO_DATE' });
  });

  test('ends in an error that says why, when the runtime says no, throws or is silent', async () => {
    const admin = await app.organization();
    const no: ClusterReport = { ok: false, description: 'No engine answers.', limits: [] };
    const cases: [ClusterReport | (() => Promise<ClusterReport>), string, string][] = [
      [no, 'DEPLOYMENT_ERROR', 'No engine answers.'],
      [() => Promise.reject(new Error('password is hunter2')), 'DEPLOYMENT_ERROR', 'could not be asked'],
      [() => new Promise(() => undefined), 'DEPLOYMENT_ERROR', 'did not answer within 0.2 seconds'],
    ];
    for (const [answer, state, message] of cases) {
      const cluster = await makeCluster(admin);
      const { stop } = work(answer, { checkTimeoutMs: 200 });
      expect(await deployAndWait(admin, cluster.url)).toMatchObject({ status: state, is_deployed: false });
      await stop();
      const { results } = ok(await admin.get(`${cluster.url}/logs`), 200);
      expect(results.at(-1)).toMatchObject({
        type: 'error',
        step: 'CreateError',
        error: { user_log_message: expect.stringContaining(message) },
      });
      expect(JSON.stringify(results)).not.toContain('hunter2');
      expect((await eventsOf(cluster.id)).at(-1)).toBe('DEPLOY_FAILED');
    }
  });

  test('of a Kubernetes without a kubeconfig says what is missing; with one the runtime gets it', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin, 'kubernetes');
    const { checkRuntime } = work(FINE);
    expect(ok(await admin.get(`${cluster.url}/isReady`), 200)).toEqual({ is_ready: false });
    expect(await deployAndWait(admin, cluster.url)).toMatchObject({ status: 'DEPLOYMENT_ERROR' });
    const { results } = ok(await admin.get(`${cluster.url}/logs`), 200);
    expect(results.at(-1).error).toMatchObject({
      user_log_message: expect.stringContaining('has no kubeconfig'),
      hint_message: expect.stringContaining('PUT'),
    });
    expect(checkRuntime).not.toHaveBeenCalled();
    const kubeconfig = `current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: 'https://127.0.0.1:6443'}}]
users: [{name: u, user: {token: t0ken}}]`;
    ok(await admin.call('PUT', `${cluster.url}/kubeconfig`, kubeconfig, { 'content-type': 'application/x-yaml' }), 204);
    expect(ok(await admin.get(`${cluster.url}/isReady`), 200)).toEqual({ is_ready: true });
    expect(await deployAndWait(admin, cluster.url)).toMatchObject({ status: 'DEPLOYED' });
    expect(checkRuntime.mock.calls[0]![0].kubeconfig).toBe(kubeconfig);
  });

  test('dry runs change nothing', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    expect(ok(await admin.post(`${cluster.url}/deploy?dry_run=true`), 200).status).toBe('QUEUED');
    work(FINE);
    const status = await deployAndWait(admin, cluster.url, '&dry_run=true');
    expect(status).toMatchObject({ status: 'READY', is_deployed: false, last_deployment_date: null });
    expect(await clusterOf(admin, cluster.id)).toMatchObject({ deployment_status: 'NEVER_DEPLOYED' });
    expect((await eventsOf(cluster.id)).at(-1)).toBe('DEPLOYED_DRY_RUN');
  });

  test('upgrading takes the new version over, and tells the old one', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    const first = work(FINE);
    await deployAndWait(admin, cluster.url);
    await first.stop();
    work({ ...FINE, description: 'engine 2.0' });
    const status = ok(await admin.post(`/cluster/${cluster.id}/upgrade?wait=40`), 200);
    expect(status).toMatchObject({ status: 'DEPLOYED', reason: 'MAINTENANCE' });
    expect(await clusterOf(admin, cluster.id)).toMatchObject({ version: 'engine 2.0' });
    const { results } = ok(await admin.get(`${cluster.url}/logs`), 200);
    expect(results.map((line: any) => line.message.safe_message)).toContain('It was engine 1.0 before.');
  });
});

describe('stopping a cluster', () => {
  test('that never ran ends STOPPED', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    expect(ok(await admin.post(`${cluster.url}/stop`), 200).status).toBe('STOP_QUEUED');
    work(FINE);
    expect(ok(await admin.post(`${cluster.url}/stop?wait=40`), 200)).toMatchObject({
      status: 'STOPPED',
      is_deployed: false,
    });
    expect((await eventsOf(cluster.id)).slice(-1)).toEqual(['STOPPED']);
  });

  test('requests that what runs on it stops, waits for that, and fails when it still runs afterwards', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    const { environment } = await runningService(admin, cluster.id);
    ok(await admin.post(`${cluster.url}/stop`), 200);
    const stopping = await app.db
      .selectFrom('deployment')
      .select(['id', 'action'])
      .where('environment_id', '=', environment.id)
      .execute();
    expect(stopping).toMatchObject([{ action: 'STOP' }]);
    const claim = () => app.db.transaction().execute((db) => claimWork(db, newId(), 15));
    expect(await claim(), 'while the stop of the environment waits').toBeUndefined();
    await app.db
      .updateTable('deployment')
      .set({ status: 'ENDED', outcome: 'ERROR' })
      .where('id', '=', stopping[0]!.id)
      .execute();
    work(FINE);
    await vi.waitFor(
      async () => expect(ok(await admin.get(`${cluster.url}/status`), 200).status).toBe('STOP_ERROR'),
      40_000,
    );
    const { results } = ok(await admin.get(`${cluster.url}/logs`), 200);
    expect(results.at(-1).error.user_log_message).toBe('1 service still runs: web.');
  });
});

/** An application on the cluster that is to run. */
async function runningService(admin: Actor, clusterId: string) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(
    await admin.post(`/project/${project.id}/environment`, { name: 'e', cluster_id: clusterId }),
    201,
  );
  const body = { name: 'web', git_repository: { url: 'https://github.com/acme/shop.git' } };
  const service = ok(await admin.post(`/environment/${environment.id}/application`, body), 201);
  await app.db.updateTable('service').set({ wanted: 'running' }).where('id', '=', service.id).execute();
  return { environment, service };
}

describe('the queue of work', () => {
  test('joins what waits and asks the same, and runs the rest one after the other', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    const ids = [await queue(admin, cluster.url), await queue(admin, cluster.url)].map((one) => one.last_execution_id);
    expect(ids[0]).toBe(ids[1]);
    const stop = ok(await admin.post(`${cluster.url}/stop`), 200);
    expect(stop).toMatchObject({ status: 'DEPLOYMENT_QUEUED' });
    expect(stop.last_execution_id).not.toBe(ids[0]);
    let atOnce = 0;
    const most: number[] = [];
    work(async () => {
      most.push(++atOnce);
      await new Promise((resolve) => setImmediate(resolve));
      atOnce--;
      return FINE;
    });
    const last = await deployAndWait(admin, cluster.url);
    expect(last.status).toBe('DEPLOYED');
    expect(most).toEqual([1, 1]);
    const rows = await app.db
      .selectFrom('cluster_work')
      .select(['action', 'outcome'])
      .where('cluster_id', '=', cluster.id)
      .orderBy('number')
      .execute();
    expect(rows.map((row) => [row.action, row.outcome])).toEqual([
      ['DEPLOY', 'SUCCESS'],
      ['STOP', 'SUCCESS'],
      ['DEPLOY', 'SUCCESS'],
    ]);
  });

  test('of a machine is left to the workers of that machine', async () => {
    const admin = await app.organization();
    const node = newId();
    await app.db.insertInto('node').values({ id: node, name: 'far' }).execute();
    const id = await insertCluster(app.context, {
      organizationId: admin.organizationId,
      name: 'far',
      runtime: 'docker',
      nodeId: node,
      deploy: true,
    });
    const claimBy = (nodeId: string) => app.db.transaction().execute((db) => claimWork(db, nodeId, 15));
    expect(await claimBy(newId())).toBeUndefined();
    expect(await claimBy(node)).toMatchObject({ cluster_id: id, action: 'DEPLOY' });
  });

  test('is not begun by a drained node, except to stop a cluster; begun work it takes over', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    const node = newId();
    await app.db.insertInto('node').values({ id: node, name: node }).execute();
    const claim = async () => (await claimWork(app.db, node, 30))?.action;
    await drainNode(app.db, node);
    await queue(admin, cluster.url);
    expect(await claim()).toBeUndefined();
    await undrainNode(app.db, node);
    expect(await claim()).toBe('DEPLOY');
    await drainNode(app.db, node);
    await app.db
      .updateTable('cluster_work')
      .set({ lease_until: new Date(0) })
      .execute();
    expect(await claim()).toBe('DEPLOY');
    const other = await makeCluster(admin);
    ok(await admin.post(`${other.url}/stop`), 200);
    expect(await claim()).toBe('STOP');
  });

  test('goes to one of many workers that claim at the same moment', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    await queue(admin, cluster.url);
    const claims = await Promise.all(
      Array.from({ length: 5 }, () => app.db.transaction().execute((db) => claimWork(db, newId(), 15))),
    );
    expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1);
  });

  test('and the deployments on the cluster keep their order and exclude each other', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    const { service } = await runningService(admin, cluster.id);
    const claimDeployment = () =>
      claimNext(app.db, { workerId: 1, nodeId: newId(), organizationSlots: 100, kinds: KINDS, limit: 1 }).then(
        ([claim]) => claim?.deployment.id,
      );
    const claimCluster = () => app.db.transaction().execute((db) => claimWork(db, newId(), 15));
    await queue(admin, cluster.url);
    ok(await admin.post(`/application/${service.id}/deploy`), 200);
    expect(await claimDeployment(), 'behind the work that was asked for before it').toBeUndefined();
    const worker = work(() => new Promise(() => undefined));
    await vi.waitFor(() => expect(worker.checkRuntime).toHaveBeenCalled(), 40_000);
    ok(await admin.post(`/application/${service.id}/redeploy`), 200);
    expect(await claimDeployment(), 'beside work that runs').toBeUndefined();
    await worker.stop();
    const next = work(FINE);
    await vi.waitFor(async () => expect((await clusterOf(admin, cluster.id)).status).toBe('DEPLOYED'), 40_000);
    await next.stop();
    await queue(admin, cluster.url);
    expect(await claimCluster(), 'behind the deployments that were asked for before it').toBeUndefined();
    expect(await claimDeployment()).toEqual(expect.any(String));
    expect(await claimCluster(), 'beside a deployment that runs').toBeUndefined();
  });

  test('is held back by a lock, and the lock ends by itself', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    await queue(admin, cluster.url);
    ok(await admin.post(`/cluster/${cluster.id}/lock`, { reason: 'x', ttl_in_days: 1 }), 200);
    expect(await app.db.transaction().execute((db) => claimWork(db, newId(), 15))).toBeUndefined();
    await app.db
      .updateTable('cluster')
      .set({ lock_expires_at: new Date(Date.now() - 1) })
      .where('id', '=', cluster.id)
      .execute();
    work(FINE);
    await vi.waitFor(async () => expect((await clusterOf(admin, cluster.id)).status).toBe('DEPLOYED'), 40_000);
    expect(await eventsOf(cluster.id)).toContain('UNLOCK');
  });

  test('is taken over when its worker was killed, and what the killed one still says is lost', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    await queue(admin, cluster.url);
    const old = (await app.db.transaction().execute((db) => claimWork(db, newId(), 15)))!;
    let answer: (report: ClusterReport) => void = () => undefined;
    const checkRuntime = vi.fn(() => new Promise<ClusterReport>((resolve) => (answer = resolve)));
    const frozen = runWork(
      { platform: app.platform, checkRuntime, checkTimeoutMs: 60_000 },
      old,
      new Lease(old.token, new AbortController()),
    );
    await vi.waitFor(() => expect(checkRuntime).toHaveBeenCalled(), 40_000);
    // As after a kill -9, or while a machine sleeps: the lease has run out.
    await app.db
      .updateTable('cluster_work')
      .set({ lease_until: new Date(0) })
      .where('id', '=', old.id)
      .execute();
    work({ ...FINE, description: 'the successor' });
    await vi.waitFor(async () => expect((await clusterOf(admin, cluster.id)).status).toBe('DEPLOYED'), 40_000);
    answer({ ok: false, description: 'too late', limits: [] });
    await expect(frozen).rejects.toThrow(ClaimLost);
    await expect(endWork(app.db, old, 'too late')).rejects.toThrow(ClaimLost);
    expect(await CLUSTER_WORK_TABLE.renew(app.db, [old.token], 15)).toEqual([]);
    expect(await clusterOf(admin, cluster.id)).toMatchObject({ status: 'DEPLOYED', version: 'the successor' });
    const messages = ok(await admin.get(`${cluster.url}/logs`), 200).results.map(
      (line: any) => line.message.safe_message,
    );
    expect(messages.filter((text: string) => text.includes('attempt 2'))).toHaveLength(1);
    expect(messages).not.toContain('too late');
  });

  test('is given back by a worker that stops, without counting', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    await queue(admin, cluster.url);
    const first = work(() => new Promise(() => undefined));
    await vi.waitFor(() => expect(first.checkRuntime).toHaveBeenCalled(), 40_000);
    await first.stop();
    const row = await app.db
      .selectFrom('cluster_work')
      .selectAll()
      .where('cluster_id', '=', cluster.id)
      .executeTakeFirstOrThrow();
    expect(row).toMatchObject({ status: 'RUNNING', attempts: 0, claim_token: null, lease_until: null });
    work(FINE);
    await vi.waitFor(async () => expect((await clusterOf(admin, cluster.id)).status).toBe('DEPLOYED'), 40_000);
  });

  test('that takes its worker down again and again ends in an error', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    await queue(admin, cluster.url);
    await app.db
      .updateTable('cluster_work')
      .set({ attempts: 5, status: 'RUNNING' })
      .where('cluster_id', '=', cluster.id)
      .execute();
    const { checkRuntime } = work(FINE);
    await vi.waitFor(async () => expect((await clusterOf(admin, cluster.id)).status).toBe('DEPLOYMENT_ERROR'), 40_000);
    expect(checkRuntime).not.toHaveBeenCalled();
  });

  test('ends with its cluster, whose delete does not wait for it', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    await queue(admin, cluster.url);
    let answer: (report: ClusterReport) => void = () => undefined;
    const { checkRuntime, stop } = work(() => new Promise((resolve) => (answer = resolve)));
    await vi.waitFor(() => expect(checkRuntime).toHaveBeenCalled(), 40_000);
    ok(await admin.delete(cluster.url), 204);
    answer(FINE);
    await stop();
    ok(await admin.get(`${cluster.url}/status`), 404);
    expect(await eventsOf(cluster.id)).not.toContain('DEPLOYED');
  });

  test('is kept in number, with its logs, however many deployments took numbers in between', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    await sql`insert into cluster_work (id, organization_id, cluster_id, number, action, status, outcome, requested_by_name, origin)
      select gen_random_uuid(), ${admin.organizationId}, ${cluster.id}, number * 10, 'DEPLOY', 'ENDED', 'SUCCESS', 'x', 'API'
      from generate_series(1, 60) number`.execute(app.db);
    await app.db.updateTable('cluster').set({ work_number: 600 }).where('id', '=', cluster.id).execute();
    await queue(admin, cluster.url);
    const rows = await app.db
      .selectFrom('cluster_work')
      .select('number')
      .where('cluster_id', '=', cluster.id)
      .orderBy('number')
      .execute();
    expect(rows).toHaveLength(50);
    expect([rows[0]!.number, rows.at(-1)!.number]).toEqual([120, 601]);
  });
});

describe('what happened on a cluster', () => {
  const from = () => new Date(Date.now() - 60_000).toISOString();
  const to = () => new Date(Date.now() + 60_000).toISOString();

  test('is listed as events within a time; a pod has none here', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    work({ ok: false, description: 'No engine answers.', limits: [] });
    await deployAndWait(admin, cluster.url);
    const url = `/cluster/${cluster.id}/events?from_date_time=${from()}&to_date_time=${to()}`;
    expect(ok(await admin.get(url), 200).results).toMatchObject([
      { kind: 'Cluster', name: cluster.name, reason: 'DEPLOY_REQUESTED', type: 'Normal' },
      { reason: 'DEPLOY_FAILED', type: 'Warning', message: 'No engine answers.', reporting_component: 'quarterdeck' },
    ]);
    for (const more of ['pod_name=web-1', 'node_name=other', 'reporting_component=kubelet'])
      expect(ok(await admin.get(`${url}&${more}`), 200).results, more).toEqual([]);
    const past = `/cluster/${cluster.id}/events?from_date_time=1000000000&to_date_time=1000000001000`;
    expect(ok(await admin.get(past), 200).results).toEqual([]);
    expect((await admin.get(`/cluster/${cluster.id}/events`)).status).toBe(400);
    expect(
      (await admin.get(`/cluster/${cluster.id}/events?from_date_time=yesterday&to_date_time=${to()}`)).status,
    ).toBe(400);
  });

  test('can be asked for by the interface of Loki', async () => {
    const admin = await app.organization();
    const cluster = await makeCluster(admin);
    work(FINE);
    await deployAndWait(admin, cluster.url);
    const ask = async (query: string, more = '') =>
      admin.get(`/cluster/${cluster.id}/logs?endpoint=query_range&query=${encodeURIComponent(query)}${more}`);
    const linesOf = (answer: { body: any }) =>
      JSON.parse(answer.body.response).data.result.flatMap((stream: any) =>
        stream.values.map((value: any) => value[1]),
      );
    const found = await ask(`{cluster_id="${cluster.id}", step="RetrieveClusterConfig"} |= "engine"`);
    expect(linesOf({ body: ok(found, 200) })).toEqual(['engine 1.0']);
    const data = JSON.parse(found.body.response).data;
    expect(data).toMatchObject({ resultType: 'streams', result: [{ stream: { action: 'DEPLOY', level: 'info' } }] });
    expect(data.result[0].values[0][0]).toMatch(/^\d{19}$/);
    expect(linesOf(await ask(`{app="other"}`))).toEqual([]);
    expect(linesOf(await ask(`{app="quarterdeck"} != "engine"`, '&limit=1&direction=forward'))).toHaveLength(1);
    expect(linesOf(await ask(`{app="quarterdeck"}`, '&start=1&end=2'))).toEqual([]);
    expect(linesOf(await ask(`{app="quarterdeck"}`, '&interval=0.0001s')).length).toBeGreaterThan(1);
    expect(linesOf(await ask(`{app="quarterdeck"}`, '&interval=1h&direction=forward'))).toHaveLength(1);
    expect(ok(await ask(`{app="quarterdeck"}`, '&interval=often'), 400).errors[0].field).toBe('interval');
    for (const [query, more] of [
      ['{app=~".*"}', ''],
      ['rate({app="quarterdeck"}[5m])', ''],
      ['', ''],
      ['{app="quarterdeck"}', '&limit=0'],
      ['{app="quarterdeck"}', '&start=2&end=1'],
    ] as const)
      expect((await ask(query, more)).status, query).toBe(400);
  });
});
