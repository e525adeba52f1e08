import { expect, test } from 'vitest';
import { MACHINE_RECORDS } from '#clusters/machine-records.ts';
import { RunningWatcher } from '#deployments/watchers/running-watcher.ts';
import type { Handle, Observation, Runtime, WatchListener } from '#runtimes/runtime.ts';
import { sql } from '#platform/database/index.ts';
import { START_AGAIN } from '#services/capabilities/service/rollback/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
const engine = useEngine(app);

/** Cluster of no machine whose runtime can be watched: what it observes is what the test says. */
class FollowedCluster {
  listener: WatchListener | undefined;
  observed: Partial<Observation> = {};
  observations = 0;
  readonly runtime: Runtime = Object.create(engine.runtime, {
    watch: {
      value: (listener: WatchListener) => {
        this.listener = listener;
        return () => (this.listener = undefined);
      },
    },
    observe: {
      value: async (handle: Handle) => {
        this.observations++;
        return { ...(await engine.runtime.observe(handle)), ...this.observed };
      },
    },
  }) as Runtime;

  async watcher(): Promise<RunningWatcher> {
    const { id } = await app.db.selectFrom('node').select('id').executeTakeFirstOrThrow();
    await app.db.updateTable('cluster').set({ node_id: null, reached_at: new Date(), watched_until: null }).execute();
    return new RunningWatcher({
      platform: app.platform,
      runtimes: { runtimeOf: async () => this.runtime },
      nodeId: id,
      machine: MACHINE_RECORDS,
      again: START_AGAIN,
    });
  }

  /** Tells that a service has changed, and how it is now. */
  change(serviceId: string, observed: Partial<Observation>): void {
    this.observed = observed;
    this.listener!.changed(serviceId);
  }
}

async function deployed(admin: Actor) {
  const { application, environment } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
  const status = async () => ok(await admin.get(`/application/${application.id}/status`), 200);
  const history = async () => ok(await admin.get(`/application/${application.id}/deploymentHistoryV2`), 200).results;
  return { application, environment, status, history };
}

test('what an event of a followed cluster is about is shown with the status within two seconds, and goes again', async () => {
  const { application, status } = await deployed(await app.organization());
  const cluster = new FollowedCluster();
  const watcher = await cluster.watcher();
  await watcher.look();
  const message = '0 of 1 instances are ready; p-1: it ended with status 3.';
  cluster.change(application.id, { state: 'failed', message });
  await expect.poll(async () => (await status()).warnings).toMatchObject([{ code: 'INSTANCES_NOT_READY', message }]);
  const { since } = (await status()).warnings[0];
  cluster.change(application.id, { state: 'partial', message: '0 of 1 instances are ready.' });
  await expect
    .poll(async () => (await status()).warnings)
    .toMatchObject([{ since, message: expect.not.stringContaining('status 3') }]);
  cluster.change(application.id, {});
  await expect.poll(async () => (await status()).warnings).toBeUndefined();
  await watcher.stop();
  expect(cluster.listener).toBeUndefined();
  const events = await app.db.selectFrom('stream_event').select('data').where('type', '=', 'service-warning').where('service_id', '=', application.id).orderBy('id').execute(); // prettier-ignore
  expect(events.map(({ data }) => (data as { message: string | null }).message)).toEqual([
    message,
    '0 of 1 instances are ready.',
    null,
  ]);
});

test('warnings of what is observed go with the stop of the service', async () => {
  const admin = await app.organization();
  const { application, status } = await deployed(admin);
  const cluster = new FollowedCluster();
  cluster.observed = { state: 'partial', message: '0 of 1 instances are ready.' };
  const watcher = await cluster.watcher();
  await watcher.look();
  expect((await status()).warnings).toMatchObject([{ code: 'INSTANCES_NOT_READY' }]);
  ok(await admin.post(`/application/${application.id}/stop?wait=40`), 200);
  await watcher.look();
  expect((await status()).warnings).toBeUndefined();
  await watcher.stop();
});

const DRIFT = [{ object: 'Deployment app', field: 'spec.replicas', manager: 'kubectl-edit' }];

test('fields that somebody changed are told by their names and manager, and left until the next deployment', async () => {
  const { application, status, history } = await deployed(await app.organization());
  const cluster = new FollowedCluster();
  const watcher = await cluster.watcher();
  await watcher.look();
  cluster.change(application.id, { drift: DRIFT });
  const message = 'spec.replicas of Deployment app was changed by kubectl-edit. The next deployment puts it back.';
  await expect.poll(async () => (await status()).warnings).toMatchObject([{ code: 'CHANGED_IN_CLUSTER', message }]);
  await watcher.look();
  expect(await history()).toHaveLength(1);
  await watcher.stop();
});

test('fields that somebody changed are put back at once, and once in ten minutes, where the cluster says so', async () => {
  const { application, history } = await deployed(await app.organization());
  await app.db
    .updateTable('cluster')
    .set({ advanced_settings: sql`'{"k8s.drift.correct_at_once": true}'` })
    .execute();
  const cluster = new FollowedCluster();
  const watcher = await cluster.watcher();
  await watcher.look();
  cluster.change(application.id, { drift: DRIFT });
  await expect.poll(async () => (await history()).map(({ status }: { status: string }) => status)).toEqual(['DEPLOYED', 'DEPLOYED']); // prettier-ignore
  await watcher.look();
  await watcher.look();
  expect(await history()).toHaveLength(2);
  await watcher.stop();
});

test('a service that is gone from a followed cluster is deployed again without waiting for the next look at all', async () => {
  const { application, history } = await deployed(await app.organization());
  const cluster = new FollowedCluster();
  const watcher = await cluster.watcher();
  await watcher.look();
  cluster.change(application.id, { state: 'absent', instances: [] });
  await expect.poll(async () => (await history()).length).toBe(2);
  await watcher.stop();
});

test('a cluster that another machine watches now is followed no longer', async () => {
  const { application } = await deployed(await app.organization());
  const cluster = new FollowedCluster();
  const watcher = await cluster.watcher();
  await watcher.look();
  expect(cluster.listener).toBeDefined();
  const other = { watched_by: application.id as string, watched_until: new Date(Date.now() + 60_000) };
  await app.db.updateTable('cluster').set(other).execute();
  await watcher.look();
  expect(cluster.listener).toBeUndefined();
  await watcher.stop();
});
