import { beforeEach, expect, test } from 'vitest';
import { RuntimeError, type ObjectChange, type Runtime, type WorkloadSpec } from '#runtimes/runtime.ts';
import { planOf } from '#services/capabilities/service/deployment-plan/deployment-plan.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';

const seen: WorkloadSpec[] = [];
let answer: (spec: WorkloadSpec, signal: AbortSignal) => Promise<ObjectChange[]>;

const app = useApp(undefined, {
  runtimeOf: async () =>
    Object.create(engine.runtime, {
      preview: {
        value: (spec: WorkloadSpec, signal: AbortSignal) => {
          seen.push(spec);
          return answer(spec, signal);
        },
      },
    }) as Runtime,
});
const engine = useEngine(app);

const CHANGED: ObjectChange[] = [
  { object: 'Deployment app', change: 'CHANGED', fields: [{ path: 'spec.replicas', from: 1, to: 2 }] },
];

beforeEach(() => {
  seen.length = 0;
  answer = async () => CHANGED;
});

/** Deploys an application with a secret on a cluster of no machine, and changes its configuration. */
async function changedApplication() {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  const url = `/application/${application.id}`;
  ok(await admin.post(`${url}/secret`, { key: 'PASSWORD', value: 'canary-value' }), 201);
  await app.db.updateTable('cluster').set({ node_id: null, reached_at: new Date() }).execute();
  const before = await planOf(admin, url);
  ok(await admin.post(`${url}/deploy?wait=40`), 200);
  ok(await admin.put(url, exampleBody({ cpu: 900 })), 200);
  return { admin, application, url, before };
}

test('the plan of a deployed service has what would change in its cluster, and no value of a secret is sent there', async () => {
  const { admin, url, before, application } = await changedApplication();
  expect(before.stages[0]!.services[0]!.changes).not.toHaveProperty('objects');
  const { changes } = (await planOf(admin, url)).stages[0]!.services[0]!;
  expect(changes.objects).toEqual(CHANGED);
  expect(changes.settings).toMatchObject([{ path: 'cpu', to: 900 }]);
  expect(seen).toMatchObject([
    {
      resources: { cpuMilli: 900 },
      environment: { PASSWORD: '' },
      identity: engine.runtime.specOf(application.id)!.identity,
      image: engine.runtime.specOf(application.id)!.image,
    },
  ]);
  expect(JSON.stringify(seen)).not.toContain('canary');
});

test('a cluster that is away or refuses leaves the plan as it is, and the plan says why its objects are not known', async () => {
  const { admin, url } = await changedApplication();
  answer = () => Promise.reject(new RuntimeError('unreachable', 'The cluster does not answer: connect ECONNREFUSED.'));
  const { changes, steps } = (await planOf(admin, url)).stages[0]!.services[0]!;
  expect(steps).toContain('DEPLOYMENT');
  expect(changes).toMatchObject({ objects_unknown: 'The cluster does not answer: connect ECONNREFUSED.' });
  expect(changes.settings).toHaveLength(1);
});

test('a plan to stop asks no cluster', async () => {
  const { admin, url } = await changedApplication();
  await planOf(admin, url, '?action=STOP');
  expect(seen).toEqual([]);
});
