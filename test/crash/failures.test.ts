import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createWorker } from '#app/engine.ts';
import { createSources } from '#app/git.ts';
import { newId } from '#kernel/ids.ts';
import { createFakeRuntime, type FakeRuntime, type FakeVerb } from '#runtimes/fake/index.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { findFaults } from '#test/crash/harness/world.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp();
let runtime: FakeRuntime;
/** Call of git that fails once. */
let failing: 'resolve' | 'checkout' | undefined;
let stop: () => Promise<void>;

beforeAll(async () => {
  const { settings } = app.platform;
  runtime = createFakeRuntime({ directory: path.join(settings.dataDir, 'fake') });
  const sources = createSources(app.platform);
  const fail = (call: typeof failing) => {
    if (failing !== call) return;
    failing = undefined;
    throw new RuntimeError('failed', `git was told to fail at ${call}.`);
  };
  const nodeId = newId();
  await app.db.insertInto('node').values({ id: nodeId, name: 'test' }).execute();
  const worker = createWorker(
    {
      settings,
      platform: app.platform,
      engineDatabase: app.database,
      directConfig: app.databaseConfig,
      nodeId,
      installation: { id: app.installationId, epoch: 1 },
    },
    { runtimeOf: async () => runtime },
    {
      ...sources,
      resolve: async (request) => {
        fail('resolve');
        return sources.resolve(request);
      },
      checkout: async (request) => {
        fail('checkout');
        return sources.checkout(request);
      },
    },
  );
  await worker.start();
  stop = () => worker.stop();
});
afterAll(async () => {
  await stop?.();
  await runtime?.close();
});

let admin: Actor;
beforeEach(async () => {
  admin = await app.organization();
  failing = undefined;
  runtime.faults = {};
});

/** Lets the next call of the verb fail, and no other. */
function failNext(verb: FakeVerb): void {
  const call = runtime.calls.filter((made) => made.verb === verb).length + 1;
  runtime.faults = { failAt: { [verb]: call } };
}

const faults = () =>
  findFaults({
    db: app.db,
    dataDir: app.platform.settings.dataDir,
    installation: { id: app.installationId, epoch: 1 },
    organizationId: admin.organizationId,
  });

const place = async () => {
  const { application, environment } = await makeExample(admin);
  return { service: `/application/${application.id}`, environment: `/environment/${environment.id}` };
};

const FAILURES: {
  request: string;
  deployed: boolean;
  fails: FakeVerb | 'resolve' | 'checkout';
  state: string;
  /** Name of the failed step; absent if no step had begun. */
  step?: string;
}[] = [
  { request: 'deploy', deployed: false, fails: 'resolve', state: 'DEPLOYMENT_ERROR' },
  { request: 'deploy', deployed: false, fails: 'checkout', state: 'BUILD_ERROR', step: 'GIT_CLONE' },
  { request: 'deploy', deployed: false, fails: 'build', state: 'BUILD_ERROR', step: 'BUILD' },
  { request: 'deploy', deployed: false, fails: 'submit', state: 'DEPLOYMENT_ERROR', step: 'DEPLOYMENT' },
  { request: 'deploy', deployed: true, fails: 'submit', state: 'DEPLOYMENT_ERROR', step: 'DEPLOYMENT' },
  { request: 'redeploy', deployed: true, fails: 'submit', state: 'DEPLOYMENT_ERROR', step: 'DEPLOYMENT' },
  { request: 'restart-service', deployed: true, fails: 'restart', state: 'RESTART_ERROR', step: 'DEPLOYMENT' },
  { request: 'stop', deployed: true, fails: 'stop', state: 'STOP_ERROR', step: 'DEPLOYMENT' },
  { request: 'uninstall', deployed: true, fails: 'remove', state: 'DELETE_ERROR', step: 'DEPLOYMENT' },
];

const SETTLED: Record<string, string> = {
  deploy: 'DEPLOYED',
  redeploy: 'DEPLOYED',
  'restart-service': 'RESTARTED',
  stop: 'STOPPED',
  uninstall: 'DELETED',
};

describe('a step that fails once', () => {
  test.each(FAILURES)(
    '$request (deployed before: $deployed): $fails ends in $state and says why, and the same request then succeeds',
    async ({ request, deployed, fails, state, step }) => {
      const { service, environment } = await place();
      if (deployed) ok(await admin.post(`${service}/deploy?wait=40`), 200);
      if (fails === 'resolve' || fails === 'checkout') failing = fails;
      else failNext(fails);
      const failed = ok(await admin.post(`${service}/${request}?wait=40`), 200);
      expect(failed).toMatchObject({ state, status: 'ERROR', status_details: { status: 'ERROR' } });
      const errors = failed.steps.details.filter((one: { status: string }) => one.status === 'ERROR');
      expect(errors.map((one: { step_name: string }) => one.step_name)).toEqual(step ? [step] : []);
      const row = await app.db
        .selectFrom('deployment_service')
        .select('error')
        .where('deployment_id', '=', failed.deployment_request_id)
        .executeTakeFirstOrThrow();
      expect(row.error).toContain('was told to fail');
      const { state: whole } = ok(await admin.get(`${environment}/status`), 200);
      expect(whole).toBe(state === 'BUILD_ERROR' ? 'DEPLOYMENT_ERROR' : state);
      expect(await faults()).toEqual([]);
      expect(ok(await admin.post(`${service}/${request}?wait=40`), 200).state).toBe(SETTLED[request]);
      expect(await faults()).toEqual([]);
    },
  );

  test.each(['service', 'environment'] as const)(
    'delete of a deployed %s: it stays with DELETE_ERROR, and the next delete takes it',
    async (what) => {
      const paths = await place();
      ok(await admin.post(`${paths.service}/deploy?wait=40`), 200);
      failNext('remove');
      ok(await admin.delete(paths[what]), 204);
      await expect.poll(async () => (await admin.get(`${paths[what]}/status`)).body.state).toBe('DELETE_ERROR');
      ok(await admin.delete(paths[what]), 204);
      await expect.poll(async () => (await admin.get(paths[what])).status).toBe(404);
      expect(await faults()).toEqual([]);
    },
  );

  test('the last release keeps running when its successor fails', async () => {
    const { service } = await place();
    ok(await admin.post(`${service}/deploy?wait=40`), 200);
    const before = await app.db
      .selectFrom('service')
      .select(['handle', 'release_id', 'wanted'])
      .where('organization_id', '=', admin.organizationId)
      .executeTakeFirstOrThrow();
    failNext('submit');
    ok(await admin.post(`${service}/deploy?wait=40`), 200);
    const after = await app.db
      .selectFrom('service')
      .select(['handle', 'release_id', 'wanted'])
      .where('organization_id', '=', admin.organizationId)
      .executeTakeFirstOrThrow();
    expect(after).toEqual(before);
    expect(await runtime.observe(after.handle as never)).toMatchObject({ state: 'running' });
  });
});
