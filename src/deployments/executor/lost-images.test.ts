import { afterEach, expect, test } from 'vitest';
import { RuntimeError } from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
const engine = useEngine(app, {}, undefined, { pretendsSources: true });

/** Lets built images lie in a registry, which answers a question for one like this. */
const registry = { hasImage: async (): Promise<boolean> => true };
afterEach(() => {
  registry.hasImage = async () => true;
});

async function deployed(): Promise<{ admin: Actor; id: string; again(): Promise<string[]> }> {
  Object.assign(engine.runtime, { registryOf: async () => null, hasImage: () => registry.hasImage() });
  const admin = await app.organization();
  const { id } = (await makeExample(admin)).application;
  const deploy = async () => {
    const { state } = ok(await admin.post(`/application/${id}/redeploy?wait=40`), 200);
    expect(state).toBe('DEPLOYED');
    return lastSteps(id);
  };
  ok(await admin.post(`/application/${id}/deploy?wait=40`), 200);
  return { admin, id, again: deploy };
}

/** Returns the names of the steps of the newest deployment of a service. */
async function lastSteps(serviceId: string): Promise<string[]> {
  const rows = await app.db
    .selectFrom('deployment_step')
    .innerJoin('deployment', 'deployment.id', 'deployment_step.deployment_id')
    .select(['deployment_step.name', 'deployment.number'])
    .where('deployment_step.service_id', '=', serviceId)
    .orderBy('deployment.number', 'desc')
    .execute();
  return rows.filter(({ number }) => number === rows[0]!.number).map(({ name }) => name);
}

test('an image that is still in its registry is not built again', async () => {
  const { again } = await deployed();
  expect(await again()).toEqual(['DEPLOYMENT']);
});

test('an image that its registry has lost is built again, also for a rollback', async () => {
  const { admin, id, again } = await deployed();
  const history = ok(await admin.get(`/application/${id}/deploymentHistoryV2`), 200).results;
  const { execution_id } = history.at(-1).identifier;
  registry.hasImage = async () => false;
  expect(await again()).toContain('BUILD');
  ok(await admin.post(`/application/${id}/rollback?wait=40`, { execution_id }), 200);
  expect(await lastSteps(id)).toContain('BUILD');
});

test('a registry that does not answer keeps nothing from being deployed', async () => {
  const { again } = await deployed();
  registry.hasImage = () => Promise.reject(new RuntimeError('unreachable', 'The registry is away.'));
  expect(await again()).toEqual(['DEPLOYMENT']);
});
