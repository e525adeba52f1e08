import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { hostOf, newContext, newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import type { Handle, Runtime, WorkloadIdentity, WorkloadSpec } from '#runtimes/runtime.ts';
import { NODE_IMAGE } from '#test/harness/docker-images.ts';
import { createDockerRuntime } from './index.ts';
import type { DockerRuntimeOptions } from './index.ts';
import { LABEL } from './labels.ts';

/** Names of all objects in the engine with a service's label, and of its environment's network. */
export async function leftoversOf(engine: Docker, identity: WorkloadIdentity): Promise<string[]> {
  const service = { label: [`${LABEL.service}=${identity.serviceId}`] };
  const environment = { label: [`${LABEL.environment}=${identity.environmentId}`] };
  const [containers, volumes, images, networks] = await Promise.all([
    engine.listContainers({ all: true, filters: service }),
    engine.listVolumes({ filters: service as never }),
    engine.listImages({ filters: JSON.stringify(service) }),
    engine.listNetworks({ filters: environment as never }),
  ]);
  return [
    ...containers.map((container) => container.Names[0]?.slice(1) ?? container.Id),
    ...(volumes.Volumes ?? []).map((volume) => volume.Name),
    ...images.map((image) => image.RepoTags?.[0] ?? image.Id),
    ...networks.map((network) => network.Name),
  ];
}

/**
 * Server for tests. `GET /` answers its release and process; other paths are commands. Variables: `FAIL` ends it at once, `PORT` is the
 * port to listen on (8080).
 */
const SERVER = `
const { createServer } = require('node:http');
if (process.env.FAIL) { console.error('it fails: ' + process.env.FAIL); process.exit(4); }
let hung = false;
const server = createServer((request, response) => {
  if (hung) return;
  const url = new URL(request.url, 'http://x');
  if (url.pathname === '/hang') hung = true;
  if (url.pathname === '/fetch')
    return void fetch(url.searchParams.get('url'), { signal: AbortSignal.timeout(5000), headers: { connection: 'close' } })
      .then(async (answer) => response.end(await answer.text()), (error) => response.writeHead(500).end(String(error.cause ?? error)));
  setTimeout(() => response.end(JSON.stringify({ release: process.env.RELEASE, started: process.hrtime.bigint().toString(), pid: process.pid })), 5);
});
server.keepAliveTimeout = 5000;
server.listen(Number(process.env.PORT ?? 8080), () => console.log('listening'));
process.on('SIGTERM', () => { server.close(() => process.exit(0)); server.closeIdleConnections(); });
`;

/** Runtime on the test engine with its own installation, router and folder. */
export interface DockerBench extends AsyncDisposable {
  installation: string;
  router: MemoryRouter;
  engine: Docker;
  runtime: Runtime;
  options: DockerRuntimeOptions;
  /** Returns a workload of the server above; it is removed when the bench closes. */
  spec(changes?: Partial<WorkloadSpec>): WorkloadSpec;
  apply(spec: WorkloadSpec): Promise<Handle>;
  /** Returns the JSON answer of a service's route for a path. */
  ask(spec: WorkloadSpec, path?: string): Promise<{ release: string; started: string }>;
  /** Returns the names of a service's containers, running or not. */
  containers(spec: WorkloadSpec): Promise<string[]>;
}

export async function openBench(socketPath: string, changes: Partial<DockerRuntimeOptions> = {}): Promise<DockerBench> {
  const installation = randomUUID();
  const router = new MemoryRouter();
  const engine = new Docker({ socketPath });
  const dataDir = await mkdtemp(join(tmpdir(), 'docker-bench-'));
  const options = { socketPath, installation, router, dataDir, log: () => undefined, ...changes };
  const runtime = await createDockerRuntime(options);
  const specs: WorkloadSpec[] = [];
  return {
    installation,
    router,
    engine,
    runtime,
    options,
    spec: (specChanges = {}) => {
      const spec = newSpec(newIdentity(installation), NODE_IMAGE, { ...SERVER_SPEC, ...specChanges });
      specs.push(spec);
      return spec;
    },
    apply: (spec) => runtime.submit(spec, newContext()),
    ask: async (spec, path = '/') => {
      const { status, body } = await router.get(hostOf(spec.identity), path);
      if (status !== 200) throw new Error(`${path} answered ${status}: ${body}`);
      return JSON.parse(body) as { release: string; started: string };
    },
    containers: async (spec) => {
      const label = [`${LABEL.service}=${spec.identity.serviceId}`];
      const found = await engine.listContainers({ all: true, filters: { label } });
      return found.map((container) => container.Names[0]!.slice(1)).sort();
    },
    [Symbol.asyncDispose]: async () => {
      for (const { identity } of specs) await runtime.remove(identity, null, newContext());
      await rm(dataDir, { recursive: true });
    },
  };
}

const SERVER_SPEC: Partial<WorkloadSpec> = {
  arguments: ['node', '-e', SERVER],
  readiness: null,
  resources: { cpuMilli: 1000, memoryMib: 128 },
  readyTimeoutSeconds: 15,
};
