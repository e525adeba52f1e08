import { afterAll, beforeAll, inject } from 'vitest';
import { createExecutionWorker, createWorker } from '#app/engine.ts';
import type { ExecutionWorker } from '#deployments/executions/worker.ts';
import { createSources } from '#app/git.ts';
import { newId } from '#kernel/ids.ts';
import { createStateServer } from '#services/terraform-state/index.ts';
import type { Images } from '#services/images/registry-images.ts';
import type { OrganizationSources } from '#services/sources/sources.ts';
import type { Tracer } from '#platform/telemetry/index.ts';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { createFakeRuntime, type FakeOptions, type FakeRuntime } from '#runtimes/fake/index.ts';
import { ok, type Actor, type TestApp } from '#test/harness/app.ts';

/** URL of the example application in a repository of its own: commits to this project change nothing. */
export const EXAMPLE = inject('example');

/** Puts something around the reading of repositories and registries, such as a wait. */
type Around = (
  sources: OrganizationSources,
) => Partial<Pick<OrganizationSources, 'checkout' | 'resolve'> & Pick<Images, 'resolveImage'>>;

export interface TestEngine {
  /** Worker of scheduled executions; set once the file's tests begin. */
  executions: ExecutionWorker;
  /** Stops both workers gracefully and starts new ones, as a restart of the program does. */
  restart(): Promise<void>;
  runtime: FakeRuntime;
  router: MemoryRouter;
}

/** Runs a worker on the fake runtime beside the application of the test file. */
export function useEngine(
  app: TestApp,
  options: FakeOptions = {},
  tracer?: Tracer,
  { around, ...extra }: { pretendsSources?: boolean; around?: Around } = {},
): TestEngine {
  const router = new MemoryRouter();
  const engine = { router, runtime: createFakeRuntime({ router, ...options }) } as TestEngine;
  let stop: () => Promise<void>;
  let closeStates: () => Promise<unknown>;
  beforeAll(async () => {
    const node = newId();
    await app.db.insertInto('node').values({ id: node, name: 'test' }).execute();
    const states = createStateServer(app.platform, { port: 0, publicUrl: '' });
    closeStates = () => states.close();
    const base = {
      settings: app.platform.settings,
      platform: app.platform,
      engineDatabase: app.database,
      directConfig: app.databaseConfig,
      nodeId: node,
      installation: { id: app.installationId, epoch: 1 },
      ...extra,
    };
    const sources = createSources(app.platform);
    const held = { ...sources, ...around?.(sources) };
    const of = [base, { runtimeOf: async () => engine.runtime }, held, tracer, states] as const;
    const begin = async () => {
      const worker = createWorker(...of);
      engine.executions = createExecutionWorker(...of);
      await worker.start();
      engine.executions.start();
      stop = async () => {
        await engine.executions.stop();
        await worker.stop();
      };
    };
    engine.restart = async () => {
      await stop();
      await begin();
    };
    await begin();
  });
  afterAll(async () => {
    await stop();
    await closeStates();
    await engine.runtime.close();
  });
  return engine;
}

/** Creates a project, an environment and the example application in it. */
export async function makeExample(admin: Actor, body: Record<string, unknown> = {}) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: `p ${newId()}` }), 201);
  const environment = ok(
    await admin.post(`/project/${project.id}/environment`, { name: 'e', mode: 'PRODUCTION' }),
    201,
  );
  const application = ok(await admin.post(`/environment/${environment.id}/application`, exampleBody(body)), 201);
  return { project, environment, application };
}

export const exampleBody = (body: Record<string, unknown> = {}) => ({
  name: 'hello',
  git_repository: { url: EXAMPLE, branch: 'HEAD' },
  dockerfile_path: 'Dockerfile',
  ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
  ...body,
});
