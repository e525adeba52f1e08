import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { createDockerRuntime } from '#runtimes/docker/index.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import { startGitServer, type GitServer } from '#runtimes/tools/git/testing.ts';
import type { HttpActor } from '#test/crash/harness/actor.ts';
import { StandInEngine, type EngineCall } from '#test/crash/harness/engine.ts';
import { setFaults } from '#test/crash/harness/faults.ts';
import { makeMachine, type Machine } from '#test/crash/harness/machine.ts';
import { startOwnPostgres, type OwnPostgres } from '#test/crash/harness/postgres.ts';
import type { ServiceProcess } from '#test/crash/harness/process.ts';
import { until } from '#test/crash/harness/until.ts';
import { findFaults } from '#test/crash/harness/world.ts';
import { useImages, type ImageServer } from '#test/harness/images.ts';

/** Time within which a process must end after SIGTERM: service managers kill it afterwards. */
const SHUTDOWN_MS = 30_000;

let postgres: OwnPostgres;
let machine: Machine;
let actor: HttpActor;
let images: ImageServer;
let registry: string;
let git: GitServer;
let gitOptions: { root: string; hangs?: RegExp };
/** Folder of the engine's socket. */
let folder: string;
let docker: StandInEngine;
/** Docker runtime with which the test observes services. */
let observer: Runtime;
let dockerActor: HttpActor;
let worker: ServiceProcess;
let made = 0;

beforeAll(async () => {
  postgres = await startOwnPostgres();
  folder = mkdtempSync(path.join(tmpdir(), 'qd-engine-'));
  const socketPath = path.join(folder, 'engine.sock');
  machine = await makeMachine({
    database: postgres.direct,
    processes: postgres.relayed,
    settings: {
      QUARTERDECK_STEP_PROGRESS_SECONDS: '10',
      QUARTERDECK_WORKER_SLOTS: '16',
      QUARTERDECK_ORGANIZATION_SLOTS: '16',
      DOCKER_HOST: `unix://${socketPath}`,
    },
  });
  docker = await StandInEngine.start(socketPath);
  images = await useImages();
  gitOptions = { root: machine.repositories.folder };
  git = await startGitServer(gitOptions);
  await machine.start('api', { role: 'api' });
  actor = await machine.organization('hung');
  dockerActor = await machine.organization('hung engines', { runtime: 'docker' });
  const { id: installation } = machine.installation;
  const options = { socketPath, installation, router: new MemoryRouter(), dataDir: machine.dataDir };
  observer = await createDockerRuntime({ ...options, log: () => undefined });
  machine.source.commit({ 'Scratch.Dockerfile': 'FROM scratch\nCOPY . .\nCMD ["/run"]\n' });
  const given = { name: 'images', kind: 'GENERIC_CR', url: images.url, config: {} };
  registry = (await actor.ask('POST', `/organization/${actor.organizationId}/containerRegistry`, 201, given)).id;
});
afterAll(async () => {
  await machine?.close();
  await postgres?.close();
  await git?.[Symbol.asyncDispose]();
  await docker?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  answerAgain();
  worker = await machine.start(`worker ${++made}`, { role: 'worker' });
});
afterEach(async () => {
  for (const process of machine.processes) if (process.role === 'worker' && process.running) await process.kill();
});

/** Deployment in the middle of a call that is never answered. */
interface Hanging {
  environment: string;
  url: string;
  /** State of its service after the deployment failed (`failed`), and after another worker completed it (`done`). */
  failed: string;
  done: string;
}

/** External systems that stop answering, each with a deployment that waits for it. */
const HANGING: Record<string, () => Promise<Hanging>> = {
  engine: async () => {
    const environment = await actor.environment(`p ${++made}`);
    const url = `/application/${await actor.application(environment, 'hello', {})}`;
    expect((await actor.ask('POST', `${url}/deploy?wait=30`, 200)).state).toBe('DEPLOYED');
    setFaults(machine.dataDir, { deaf: ['stop'] });
    await actor.ask('POST', `${url}/stop`, 200);
    await until('it is being stopped', async () => (await stateOf(url)) === 'STOPPING');
    return { environment, url, failed: 'STOP_ERROR', done: 'STOPPED' };
  },
  'git server': async () => {
    gitOptions.hangs = /git-upload-pack$/;
    const environment = await actor.environment(`p ${++made}`);
    const git_repository = { url: `${git.url}/hello`, branch: 'main' };
    const url = `/application/${await actor.application(environment, 'hello', { git_repository })}`;
    const asked = () => git.requests.filter((request) => /git-upload-pack$/.test(request)).length;
    const before = asked();
    await actor.ask('POST', `${url}/deploy`, 200);
    await until('git waits', () => asked() > before);
    return { environment, url, failed: 'DEPLOYMENT_ERROR', done: 'DEPLOYED' };
  },
  registry: async () => {
    images.hang(true);
    const environment = await actor.environment(`p ${++made}`);
    const body = { name: 'c', registry_id: registry, image_name: `${images.host}/team/app`, tag: '1', ports: [] };
    const { id } = await actor.ask('POST', `/environment/${environment}/container`, 201, body);
    const before = images.unanswered;
    await actor.ask('POST', `/container/${id}/deploy`, 200);
    await until('the registry is asked', () => images.unanswered > before);
    return { environment, url: `/container/${id}`, failed: 'DEPLOYMENT_ERROR', done: 'DEPLOYED' };
  },
};

/** Calls of Docker Engine that are never answered. Each has the action that makes it and the ends of that action. */
const DOCKER_CALLS: Record<EngineCall, { action: string; failed: string; done: string }> = {
  create: { action: 'restart-service', failed: 'RESTART_ERROR', done: 'RESTARTED' },
  start: { action: 'restart-service', failed: 'RESTART_ERROR', done: 'RESTARTED' },
  inspect: { action: 'restart-service', failed: 'RESTART_ERROR', done: 'RESTARTED' },
  connect: { action: 'restart-service', failed: 'RESTART_ERROR', done: 'RESTARTED' },
  stop: { action: 'stop', failed: 'STOP_ERROR', done: 'STOPPED' },
  build: { action: 'deploy', failed: 'BUILD_ERROR', done: 'DEPLOYED' },
};

/** Prepares a service whose action will hang in the call; the returned function begins the action. */
async function prepareDocker(call: EngineCall): Promise<() => Promise<Hanging>> {
  const { action, failed, done } = DOCKER_CALLS[call];
  const environment = await dockerActor.environment(`p ${++made}`);
  const source = { dockerfile_path: 'Scratch.Dockerfile', ports: [] };
  const id = await dockerActor.application(environment, `hung-${call}`, source);
  const url = `/application/${id}`;
  if (action !== 'deploy') expect((await dockerActor.ask('POST', `${url}/deploy?wait=30`, 200)).state).toBe('DEPLOYED');
  if (action === 'stop') docker.mayStop(id);
  return async () => {
    docker.hang(call, id);
    await dockerActor.ask('POST', `${url}/${action}`, 200);
    // Observers inspect services, too: the state shows that the action has begun.
    await until(
      async () => `${action} asks the engine to ${call} (state ${await stateOf(url)})`,
      async () => docker.unanswered(call, id) > 0 && (await stateOf(url)).endsWith('ING'),
    );
    return { environment, url, failed, done };
  };
}

/** Starts a deployment on each hanging system, all at once: the first must not reach its deadline before the last hangs. */
async function hangAll(): Promise<Hanging[]> {
  const calls = Object.keys(DOCKER_CALLS) as EngineCall[];
  const prepared = await Promise.all(calls.map(prepareDocker));
  return Promise.all([...Object.values(HANGING), ...prepared].map((hang) => hang()));
}

function answerAgain(): void {
  setFaults(machine.dataDir, {});
  gitOptions.hangs = undefined;
  images.hang(false);
  docker.answerAgain();
}

/** Returns the actor of the organization that an object belongs to. */
async function actorOf(path: string): Promise<HttpActor> {
  return (await actor.call('GET', path)).status === 200 ? actor : dockerActor;
}

const stateOf = async (url: string): Promise<string> =>
  (await (await actorOf(url)).ask('GET', `${url}/status`, 200)).state;

const cancel = async (environment: string) =>
  (await actorOf(`/environment/${environment}`)).call('POST', `/environment/${environment}/cancelDeployment`);

/** Waits until each service has the state. */
async function untilAll(hanging: Hanging[], state: (one: Hanging) => string, timeoutMs: number): Promise<void> {
  const found = new Map<string, string>();
  const right = async (one: Hanging) => {
    found.set(one.url, await stateOf(one.url));
    return found.get(one.url) === state(one);
  };
  await until(
    async () => `each has ended as it should: ${JSON.stringify([...found])}`,
    async () => (await Promise.all(hanging.map(right))).every(Boolean),
    timeoutMs,
  );
}

/** Sends SIGTERM or SIGKILL and waits for the end; SIGTERM must end the process in time. */
async function end(process: ServiceProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  const asked = performance.now();
  if (signal === 'SIGKILL') return process.kill();
  await process.terminate();
  expect(performance.now() - asked).toBeLessThan(SHUTDOWN_MS);
}

/** Lets all systems answer again and starts another worker, which must complete every request, leave nothing behind and lose nothing. */
async function goOn(hanging: Hanging[]): Promise<void> {
  answerAgain();
  await machine.start('next', { role: 'worker' });
  await untilAll(hanging, ({ done }) => done, 60_000);
  await untilClean();
}

async function untilClean(): Promise<void> {
  await machine.settled();
  docker.answerAgain();
  // Ended attempts whose calls are answered late remove what those calls made.
  let faults: string[] = [];
  await until(
    () => faults.join('\n'),
    async () => {
      faults = await findFaults({ ...machine, observe: (handle) => observer.observe(handle) });
      return faults.length === 0;
    },
    10_000,
  );
  // Neither a lost attempt nor its successor has taken away what served.
  expect(docker.gaps).toEqual([]);
}

describe('a runtime, each call of Docker Engine, a git server and a registry that take a call and never answer', () => {
  test('their deployments end in errors by their deadlines', async () => {
    const hanging = await hangAll();
    await untilAll(hanging, ({ failed }) => failed, 60_000);
    await untilClean();
  });

  test('their deployments are cancelled all the same', async () => {
    const hanging = await hangAll();
    for (const { environment } of hanging) expect((await cancel(environment)).status).toBe(200);
    await untilAll(hanging, () => 'CANCELED', 20_000);
    await untilClean();
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)('a worker that gets %s ends, and another one goes on', async (signal) => {
    const hanging = await hangAll();
    await end(worker, signal);
    await goOn(hanging);
  });
});

describe('a PostgreSQL that stops answering in the middle of deployments', () => {
  test.each(['SIGTERM', 'SIGKILL'] as const)('a worker that gets %s ends, and another one goes on', async (signal) => {
    const hanging = await hangAll();
    await postgres.relay.set('silent');
    try {
      await end(worker, signal);
    } finally {
      await postgres.relay.set('open');
    }
    await goOn(hanging);
  });

  test('what was hanging meanwhile is cancelled as soon as it answers again', async () => {
    const hanging = await hangAll();
    await postgres.relay.set('silent');
    // Longer than the deadline of a step, and than the lease of a worker that does not renew it.
    await sleep(12_000);
    await postgres.relay.set('open');
    for (const { environment } of hanging) await cancel(environment);
    await until('all have ended', async () => {
      const states = await Promise.all(hanging.map(({ url }) => stateOf(url)));
      return states.every((state) => state === 'CANCELED' || state.endsWith('_ERROR'));
    });
    await untilClean();
  });
});

test('a PostgreSQL that is killed alone: the worker lives on, its lost attempts take nothing away, and all is brought to its end', async () => {
  const hanging = await hangAll();
  await postgres.end('immediate');
  await postgres.start();
  answerAgain();
  await untilAll(hanging, ({ done }) => done, 60_000);
  expect(worker.running).toBe(true);
  await untilClean();
});
