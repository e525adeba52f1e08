import { afterAll, beforeAll } from 'vitest';
import { createWorker } from '#app/engine.ts';
import { createSources } from '#app/sources.ts';
import { newId } from '#kernel/ids.ts';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { createHostRuntime } from '#runtimes/host/index.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import type { TestApp } from '#test/harness/app.ts';

/** A worker on the host runtime beside the application of the test file: real builds and processes, in the machine's own network. */
export function useHostEngine(app: TestApp, log: (line: string) => void): { runtime: Runtime } {
  const engine = {} as { runtime: Runtime };
  let stop: () => Promise<void>;
  beforeAll(async () => {
    const { settings } = app.platform;
    const installation = app.installationId;
    engine.runtime = await createHostRuntime({
      dataDir: settings.dataDir,
      installation,
      router: new MemoryRouter(),
      log,
      network: 'machine',
    });
    const node = newId();
    await app.db.insertInto('node').values({ id: node, name: 'test' }).execute();
    const worker = createWorker(
      {
        settings,
        platform: app.platform,
        engineDatabase: app.database,
        directConfig: app.databaseConfig,
        nodeId: node,
        installation: { id: installation, epoch: 1 },
      },
      { get: async () => engine.runtime },
      createSources(app.platform),
    );
    await worker.start();
    stop = () => worker.stop();
  });
  afterAll(() => stop());
  return engine;
}
