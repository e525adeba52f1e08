import { afterAll, beforeAll } from 'vitest';
import { createExecutionWorker, createWorker } from '#app/engine.ts';
import { createSources } from '#app/git.ts';
import { newId } from '#kernel/ids.ts';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { createDockerRuntime } from '#runtimes/docker/index.ts';
import { createHostRuntime } from '#runtimes/host/index.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import { createStateServer } from '#services/terraform-state/index.ts';
import type { TestApp } from '#test/harness/app.ts';
import { removeInstallation } from '#test/harness/remove-everything.ts';

interface RealEngine {
  runtime: Runtime;
  /** Routes that the runtime publishes for its services. */
  router: MemoryRouter;
}

/** Runs a worker on the host runtime beside the application of the test file: real builds and processes, in the machine's own network. */
export const useHostEngine = (
  app: TestApp,
  log: (line: string) => void,
  network: 'machine' | 'auto' = 'machine',
): RealEngine => useEngineOn(app, (base) => createHostRuntime({ ...base, log, network }));

/** Runs a worker on a Docker Engine beside the application of the test file. */
export const useDockerEngine = (app: TestApp, socketPath: string, log: (line: string) => void): RealEngine =>
  useEngineOn(app, (base) => createDockerRuntime({ ...base, socketPath, log }));

/** Options that every runtime beside an application needs. */
interface RuntimeBase {
  dataDir: string;
  installation: string;
  router: MemoryRouter;
}

/** Runs a worker on a real runtime beside the application of the test file. */
function useEngineOn(app: TestApp, makeRuntime: (base: RuntimeBase) => Promise<Runtime>): RealEngine {
  const engine = { router: new MemoryRouter() } as RealEngine;
  let stop: () => Promise<unknown>;
  beforeAll(async () => {
    const { settings } = app.platform;
    engine.runtime = await makeRuntime({
      dataDir: settings.dataDir,
      installation: app.installationId,
      router: engine.router,
    });
    const node = newId();
    await app.db.insertInto('node').values({ id: node, name: 'test' }).execute();
    const states = createStateServer(app.platform, { port: 0, publicUrl: '' });
    const of: Parameters<typeof createWorker> = [
      {
        settings,
        platform: app.platform,
        engineDatabase: app.database,
        directConfig: app.databaseConfig,
        nodeId: node,
        installation: { id: app.installationId, epoch: 1 },
      },
      { runtimeOf: async () => engine.runtime },
      createSources(app.platform),
      undefined,
      states,
    ];
    const worker = createWorker(...of);
    const executions = createExecutionWorker(...of);
    await worker.start();
    executions.start();
    stop = async () => {
      await executions.stop();
      await worker.stop();
      await states.close();
    };
  });
  afterAll(async () => {
    await stop();
    // Instances outlive the control plane: those of the file are removed with it.
    await removeInstallation(engine.runtime, app.db, app.installationId);
    await engine.runtime.close();
  });
  return engine;
}
