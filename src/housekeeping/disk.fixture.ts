import { Registry } from 'prom-client';
import { expect } from 'vitest';
import { DiskGuard } from '#housekeeping/disk-guard.ts';
import type { DiskItem, Runtime } from '#runtimes/runtime.ts';
import { TreeMeter } from '#runtimes/tools/disk-walk/index.ts';
import { submit } from '#services/capabilities/service/actions/request.ts';
import { DEPLOYMENTS_BY_KIND } from '#services/mount.ts';
import type { TestApp } from '#test/harness/app.ts';
import type { TestEngine } from '#test/harness/engine.ts';

export const MIB = 2 ** 20;
export const GIB = 2 ** 30;

/** Moves all clusters to one machine, and returns its disk guard. */
export async function makeGuard(app: TestApp, engine: TestEngine, more: Runtime[] = []) {
  const { id } = await app.db.selectFrom('node').select('id').executeTakeFirstOrThrow();
  await app.db.updateTable('cluster').set({ node_id: id }).execute();
  const registry = new Registry();
  const all: Runtime[] = [engine.runtime, ...more];
  const guard = new DiskGuard({
    platform: app.platform,
    runtimes: {
      onMachine: async (name) => all.find((runtime) => runtime.name === name) ?? Promise.reject(new Error(name)),
    },
    nodeId: id,
    installation: { id: app.installationId },
    registry,
    checkoutMeter: new TreeMeter(),
    kinds: DEPLOYMENTS_BY_KIND,
    stopService: (context, place, serviceId) => submit(context, place, 'STOP', [serviceId], { automatic: true }),
  });
  const endedExecutions = async (): Promise<number> =>
    Number(/disk_limit_ended_total\{kind="execution"\} (\d+)/.exec(await registry.metrics())?.[1] ?? 0);
  return { guard, nodeId: id, metrics: () => registry.metrics(), endedExecutions };
}

/** Returns an item of an execution, or of another kind. */
export const itemOf = (serviceId: string, changes: Partial<DiskItem>): DiskItem => ({
  kind: 'task',
  serviceId,
  name: '',
  bytes: 0,
  isWhole: true,
  ...changes,
});

/** Waits until the fake runs an execution of a service, and returns its name. */
export async function runningTask({ runtime }: TestEngine, serviceId: string): Promise<string> {
  await expect.poll(() => runtime.tasksOf(serviceId).length, { timeout: 15_000 }).toBe(1);
  return runtime.tasksOf(serviceId)[0]!.name;
}
