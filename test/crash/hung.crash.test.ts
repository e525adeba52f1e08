import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGitServer, type GitServer } from '#runtimes/tools/git/testing.ts';
import type { HttpActor } from '#test/crash/harness/actor.ts';
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
let worker: ServiceProcess;
let made = 0;

beforeAll(async () => {
  postgres = await startOwnPostgres();
  machine = await makeMachine({
    database: postgres.direct,
    processes: postgres.relayed,
    settings: { QUARTERDECK_STEP_PROGRESS_SECONDS: '10' },
  });
  images = await useImages();
  gitOptions = { root: machine.repositories.folder };
  git = await startGitServer(gitOptions);
  await machine.start('api', { role: 'api' });
  actor = await machine.organization('hung');
  const given = { name: 'images', kind: 'GENERIC_CR', url: images.url, config: {} };
  registry = (await actor.ask('POST', `/organization/${actor.organizationId}/containerRegistry`, 201, given)).id;
});
afterAll(async () => {
  await machine?.close();
  await postgres?.close();
  await git?.[Symbol.asyncDispose]();
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

/** Starts a deployment on each hanging system. The engine's comes last: the others need a working engine to reach their calls. */
async function hangAll(): Promise<Hanging[]> {
  const [engine, ...others] = Object.values(HANGING);
  const all = [];
  for (const hang of [...others, engine!]) all.push(await hang());
  return all;
}

function answerAgain(): void {
  setFaults(machine.dataDir, {});
  gitOptions.hangs = undefined;
  images.hang(false);
}

const stateOf = async (url: string): Promise<string> => (await actor.ask('GET', `${url}/status`, 200)).state;

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
  expect(await findFaults(machine)).toEqual([]);
}

describe('an engine, a git server and a registry that take a call and never answer', () => {
  test('their deployments end in errors soon after their deadlines', async () => {
    const hanging = await hangAll();
    const began = performance.now();
    await untilAll(hanging, ({ failed }) => failed, 40_000);
    expect(performance.now() - began).toBeLessThan(30_000);
    await untilClean();
  });

  test('their deployments are cancelled all the same', async () => {
    const hanging = await hangAll();
    for (const { environment } of hanging) await actor.ask('POST', `/environment/${environment}/cancelDeployment`, 200);
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
    for (const { environment } of hanging) await actor.call('POST', `/environment/${environment}/cancelDeployment`);
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
