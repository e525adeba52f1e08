import { expect, test } from 'vitest';
import { removeFound, takeInventory, type InventoryParts } from '#clusters/inventory.ts';
import { RuntimeError, type FoundWorkload, type Runtime } from '#runtimes/runtime.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
const engine = useEngine(app);

/** Deploys a service, whose cluster then counts as one with a connection of its own. */
async function deployedApart() {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
  const { identity } = engine.runtime.specOf(application.id)!;
  const { environmentId } = identity;
  const environment = await app.db.selectFrom('environment').select('cluster_id').where('id', '=', environmentId).executeTakeFirstOrThrow(); // prettier-ignore
  const id = environment.cluster_id;
  await app.db.updateTable('cluster').set({ runtime: 'kubernetes', node_id: null }).where('id', '=', id).execute();
  const found: FoundWorkload = { identity, displayName: 'example', state: 'running' };
  return { application, found, clusterId: id };
}

/** Inventory of a machine without runtimes, whose clusters run these workloads. */
function partsOf(runtime: Partial<Runtime>): InventoryParts {
  const onMachine = () => Promise.reject(new RuntimeError('refused', 'There is none.'));
  return {
    platform: app.platform,
    nodeId: '00000000-0000-7000-8000-000000000000',
    runtimes: { onMachine, runtimeOf: async () => runtime as Runtime },
  };
}

test('workloads on clusters with a connection of their own are compared with the database, and removed over it', async () => {
  const { application, found, clusterId } = await deployedApart();
  const stranger = { ...found, identity: { ...found.identity, serviceId: '00000000-0000-7000-8000-000000000001' } };
  const removed: string[] = [];
  const parts = partsOf({
    list: async () => [found, stranger],
    remove: async ({ serviceId }) => void removed.push(serviceId),
  });
  const { differences } = await takeInventory(parts);
  expect(differences).toMatchObject([{ difference: 'unknown', serviceId: stranger.identity.serviceId, clusterId }]);
  await removeFound(parts, differences);
  expect(removed).toEqual([stranger.identity.serviceId]);

  const warning = {
    code: 'CHANGED_IN_CLUSTER',
    subject: 'fields',
    message: 'spec.replicas was changed by kubectl-edit.',
  };
  const of = { organization_id: found.identity.organizationId, service_id: application.id as string };
  await app.db
    .insertInto('service_warning')
    .values({ ...of, ...warning })
    .execute();
  const after = await takeInventory(partsOf({ list: async () => [found] }));
  expect(after.differences).toMatchObject([
    { difference: 'changed', serviceId: application.id, changes: warning.message },
  ]);
});

test('a cluster that does not answer is named, and nothing of it counts as missing', async () => {
  await deployedApart();
  const list = () => Promise.reject(new RuntimeError('unreachable', 'The cluster does not answer.'));
  const { differences, unseen } = await takeInventory(partsOf({ list }));
  expect(differences).toEqual([]);
  expect(unseen).toContainEqual(
    expect.stringMatching(/^The cluster .+ cannot be asked: The cluster does not answer\.$/),
  );
});
