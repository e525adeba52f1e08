import path from 'node:path';
import { createWorker } from '#app/engine.ts';
import { createSources } from '#app/git.ts';
import type { DeploymentWorker } from '#deployments/executor/worker.ts';
import { newId } from '#kernel/ids.ts';
import { createStateServer, type StateServer } from '#services/terraform-state/index.ts';
import { createFakeRuntime, type FakeRuntime } from '#runtimes/fake/index.ts';
import type { Machine } from '#test/crash/harness/machine.ts';
import { bundledFixture } from '#test/harness/bundled-program.ts';
import { startChild, type ChildOfTest } from '#test/crash/harness/process.ts';

const FIXTURE = await bundledFixture(path.join(import.meta.dirname, '../worker.fixture.ts'));

/** Worker in the test's own process, on a machine's database and fake runtime. */
interface OwnWorker {
  worker: DeploymentWorker;
  runtime: FakeRuntime;
  states: StateServer;
}

/** Creates a worker, not yet started, that continues the work of a killed one. */
function makeOwnWorker(machine: Machine): OwnWorker {
  const runtime = createFakeRuntime({ directory: path.join(machine.dataDir, 'fake') });
  const states = createStateServer(machine.platform, { port: 0, publicUrl: '' });
  const worker = createWorker(
    {
      settings: machine.platform.settings,
      platform: machine.platform,
      engineDatabase: machine.database,
      directConfig: machine.databaseConfig,
      nodeId: newId(),
      installation: machine.installation,
    },
    { runtimeOf: async () => runtime },
    createSources(machine.platform),
    undefined,
    states,
  );
  return { worker, runtime, states };
}

/** Completes all waiting work with a worker of this process. */
export async function carryOn(machine: Machine): Promise<void> {
  const { worker, runtime, states } = makeOwnWorker(machine);
  await worker.start();
  try {
    await machine.settled();
  } finally {
    await worker.stop();
    await states.close();
    await runtime.close();
  }
}

/** Starts a worker process that kills itself at its n-th kill point, 0 for never (worker.fixture.ts). */
export const startDyingWorker = (machine: Machine, dieAt: number, more: { formats?: number[] } = {}): ChildOfTest =>
  startChild(
    FIXTURE,
    [],
    { PATH: process.env.PATH, NODE_COMPILE_CACHE: machine.environment['NODE_COMPILE_CACHE'] },
    JSON.stringify({
      config: machine.databaseConfig,
      environment: machine.environment,
      nodeId: newId(),
      dieAt,
      every: process.env.SOAK !== undefined,
      ...more,
    }),
  );
