import { randomUUID } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import type { BuildContext, BuildSpec, TaskSpec, WorkloadIdentity, WorkloadSpec } from '#runtimes/runtime.ts';
import type { TaskStep } from '#runtimes/fake/task-program.ts';

/**
 * Program that starts the application of `fake/application.ts` as an ordinary process. Runs on any version of Node that the base image has.
 */
const MAIN = `
import { readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { randomUUID } from 'node:crypto';
import { applicationPort, createApplication, startProblem } from './application.mjs';

const problem = startProblem(process.env);
if (problem) {
  console.error(problem);
  process.exit(3);
}
const server = createApplication({
  environment: process.env,
  hostname: hostname(),
  process: randomUUID(),
  readFile: (path) => readFileSync(path, 'utf8'),
  writeFile: (path, text) => writeFileSync(path, text),
  log: (text, stream) => (stream === 'stderr' ? console.error(text) : console.log(text)),
  exit: (code) => process.exit(code),
});
server.keepAliveTimeout = 5000;
server.listen(applicationPort(process.env), () => console.log('listening, release ' + process.env.RELEASE));
process.on('SIGTERM', () => {
  console.log('ending');
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});
`;

/** Program that performs the steps of `fake/task-program.ts` in its last argument. */
const TASK = `
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { runSteps } from './task-program.mjs';

// A reader never sees a file that is half written, at whatever moment the child is killed.
const COUNT = \`const fs = require('node:fs'); const [, file] = process.argv; let n = 0;
setInterval(() => { fs.writeFileSync(file + '.new', String(++n)); fs.renameSync(file + '.new', file); }, 100)\`;
const status = await runSteps(JSON.parse(process.argv.at(-1)), {
  environment: process.env,
  process: randomUUID(),
  arguments: process.argv.slice(2, -1),
  readFile: (path) => readFileSync(path, 'utf8'),
  writeFile: (path, text) => writeFileSync(path, text),
  say: (text, stream) => (stream === 'stderr' ? console.error(text) : console.log(text)),
  wait: (ms) => sleep(ms),
  fetch: async (url) => (await fetch(url, { signal: AbortSignal.timeout(5000) })).text(),
  countInChild: async (path) => {
    spawn(process.execPath, ['-e', COUNT, path], { stdio: 'ignore' });
    while (!existsSync(path)) await sleep(50);
  },
});
process.exit(status);
`;

/**
 * Writes a folder with the application, the program of executions and a Dockerfile. The Dockerfile starts from `baseImage`, which needs
 * `node` (18 or later).
 */
export async function writeFixture(directory: string, baseImage: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const text = await readFile(new URL('../fake/application.ts', import.meta.url), 'utf8');
  // In the image the file has no other modules beside it.
  const source = text.replace(`'#kernel/node-http.ts'`, `'node:http'`);
  await writeFile(join(directory, 'application.mjs'), stripTypeScriptTypes(source));
  await writeFile(join(directory, 'server.mjs'), MAIN.trimStart());
  const program = await readFile(new URL('../fake/task-program.ts', import.meta.url), 'utf8');
  await writeFile(join(directory, 'task-program.mjs'), stripTypeScriptTypes(program));
  await writeFile(join(directory, 'task.mjs'), TASK.trimStart());
  await writeFile(
    join(directory, 'Dockerfile'),
    [
      `FROM ${baseImage}`,
      'ARG FLAVOUR=plain',
      'WORKDIR /app',
      'COPY *.mjs ./',
      'RUN echo "flavour $FLAVOUR" > /app/built.txt',
      'ENV FROM_IMAGE=yes',
      'CMD ["node", "server.mjs"]',
      '',
    ].join('\n'),
  );
}

/** Returns a unique identity with its own environment and service. */
export const newIdentity = (installation: string, generation = 1): WorkloadIdentity => ({
  installation,
  organizationId: randomUUID(),
  projectId: randomUUID(),
  environmentId: randomUUID(),
  serviceId: randomUUID(),
  generation,
});

/** Returns the host name under which the router answers for a service of the contract. */
export const hostOf = (identity: WorkloadIdentity): string => `contract-z${identity.serviceId.slice(0, 8)}.localhost`;

/** Returns a workload of the fixture: one instance, HTTP on 8080, ready by `/healthz`. */
export function newSpec(identity: WorkloadIdentity, image: string, changes: Partial<WorkloadSpec> = {}): WorkloadSpec {
  const { environment, ...others } = changes;
  return {
    type: 'workload',
    identity,
    displayName: 'contract',
    hostname: `app-z${identity.serviceId.slice(0, 8)}`,
    image,
    registry: null,
    entrypoint: [],
    arguments: [],
    environment: { RELEASE: String(identity.generation), ...environment },
    files: [],
    ports: [
      {
        id: 'web',
        name: 'web',
        internalPort: 8080,
        externalPort: 443,
        protocol: 'HTTP',
        publiclyAccessible: true,
        isDefault: true,
      },
    ],
    readiness: {
      check: { type: 'http', port: 8080, path: '/healthz', scheme: 'HTTP' },
      initialDelaySeconds: 0,
      periodSeconds: 1,
      timeoutSeconds: 1,
      successThreshold: 1,
      failureThreshold: 30,
    },
    liveness: null,
    resources: { cpuMilli: 250, memoryMib: 256 },
    instances: { min: 1, max: 1 },
    storage: [],
    routes: [{ host: hostOf(identity), portId: 'web' }],
    labels: {},
    readyTimeoutSeconds: 30,
    gracePeriodSeconds: 5,
    secrets: [],
    ...others,
  };
}

/** Returns the next release of the same service, with changes. */
export function nextSpec(spec: WorkloadSpec, changes: Partial<WorkloadSpec> = {}): WorkloadSpec {
  const identity = { ...spec.identity, generation: spec.identity.generation + 1 };
  const environment = { ...spec.environment, RELEASE: String(identity.generation), ...changes.environment };
  return { ...spec, ...changes, identity, environment };
}

/** Returns a command of the fixture that performs the steps and ends. */
export function newTask(
  identity: WorkloadIdentity,
  image: string,
  steps: TaskStep[],
  changes: Partial<TaskSpec> = {},
): TaskSpec {
  return {
    identity,
    displayName: 'contract',
    name: `task-${randomUUID().slice(0, 8)}`,
    image,
    registry: null,
    entrypoint: [],
    arguments: ['node', 'task.mjs', JSON.stringify(steps)],
    environment: {},
    files: [],
    resources: { cpuMilli: 500, memoryMib: 256 },
    storage: [],
    labels: {},
    gracePeriodSeconds: 2,
    secrets: [],
    timeoutSeconds: 60,
    outputPath: null,
    ...changes,
  };
}

/** Returns a build of the fixture's folder. */
export const newBuild = (
  identity: WorkloadIdentity,
  directory: string,
  changes: Partial<BuildSpec> = {},
): BuildSpec => ({
  identity,
  directory,
  rootPath: '/',
  dockerfilePath: 'Dockerfile',
  targetStage: null,
  arguments: {},
  secretMounts: {},
  cacheKey: randomUUID().replaceAll('-', ''),
  timeoutSeconds: 300,
  resources: { cpuMilli: 1000, memoryMib: 512 },
  secrets: [],
  ...changes,
});

/** Returns a context that keeps its log lines and uses the given signal. */
export function newContext(signal: AbortSignal = new AbortController().signal): BuildContext & { lines: string[] } {
  const lines: string[] = [];
  return {
    signal,
    lines,
    log: (line) => void lines.push(line),
    // As if the operator shared every image of the engine.
    resolveImage: async (name) => ({ reference: name, onBuild: [], registry: null }),
    checkHost: async () => undefined,
  };
}
