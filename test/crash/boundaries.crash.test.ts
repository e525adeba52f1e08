import { describe, expect, test } from 'vitest';
import type { HttpActor } from '#test/crash/harness/actor.ts';
import { differences, readEndState } from '#test/crash/harness/end-state.ts';
import { carryOn, startDyingWorker } from '#test/crash/harness/lane.ts';
import { useMachine, type Machine } from '#test/crash/harness/machine.ts';
import { strideOf } from '#test/harness/random.ts';
import { until } from '#test/crash/harness/until.ts';
import { findFaults } from '#test/crash/harness/world.ts';
import { useImages } from '#test/harness/images.ts';

/** Environment with the services that the scenario needs. */
interface Place {
  id: string;
  services: Record<string, string>;
}

interface Scenario {
  name: string;
  /** Names of the services, one list for each stage. */
  stages: string[][];
  /** Creates a service; without it an application is created. */
  make?(actor: HttpActor, environmentId: string, name: string): Promise<string>;
  /** True if the services are deployed before the request. */
  deployed: boolean;
  request(actor: HttpActor, place: Place): Promise<unknown>;
}

const ACTIONS: Omit<Scenario, 'stages'>[] = [
  { name: 'deploy', deployed: false, request: (actor, { id }) => actor.ask('POST', `/environment/${id}/deploy`, 200) },
  {
    name: 'redeploy',
    deployed: true,
    request: (actor, { id }) => actor.ask('POST', `/environment/${id}/redeploy`, 200),
  },
  { name: 'stop', deployed: true, request: (actor, { id }) => actor.ask('POST', `/environment/${id}/stop`, 200) },
  {
    name: 'restart',
    deployed: true,
    request: (actor, { services }) => actor.ask('POST', `/application/${services['web']}/restart-service`, 200),
  },
  {
    name: 'uninstall',
    deployed: true,
    request: (actor, { services }) => actor.ask('POST', `/application/${services['web']}/uninstall`, 200),
  },
  {
    name: 'delete',
    deployed: true,
    request: (actor, { services }) => actor.ask('DELETE', `/application/${services['web']}`, 204),
  },
  {
    name: 'delete of the environment',
    deployed: true,
    request: (actor, { id }) => actor.ask('DELETE', `/environment/${id}`, 204),
  },
];

/** Creates a job whose event commands end by themselves. */
const makeJob = async (actor: HttpActor, environmentId: string, name: string): Promise<string> => {
  const body = {
    name,
    source: { docker: { git_repository: { url: actor.source, branch: 'main' }, dockerfile_path: 'Dockerfile' } },
    schedule: { on_start: { arguments: ['up'] }, on_delete: { arguments: ['down'] } },
  };
  return (await actor.ask('POST', `/environment/${environmentId}/job`, 201, body)).id;
};

const JOB_ACTIONS: Omit<Scenario, 'stages'>[] = [
  {
    name: 'deploy of a job',
    deployed: false,
    make: makeJob,
    request: (actor, { services }) => actor.ask('POST', `/job/${services['web']}/deploy`, 200),
  },
  {
    name: 'one event of a job',
    deployed: true,
    make: makeJob,
    request: (actor, { services }) => actor.ask('POST', `/job/${services['web']}/deploy?forceEvent=DELETE`, 200),
  },
  {
    name: 'uninstall of a job',
    deployed: true,
    make: makeJob,
    request: (actor, { services }) => actor.ask('POST', `/job/${services['web']}/uninstall`, 200),
  },
];

const images = await useImages();
/** Counter that keeps the names of services unique. */
let made = 0;

/** Create requests of the other kinds of services: path, and function that returns the body. */
const OTHERS: Record<string, (actor: HttpActor, name: string) => Promise<object> | object> = {
  container: async (actor, name) => {
    const body = { name: `of ${name} ${++made}`, kind: 'GENERIC_CR', url: images.url, config: {} };
    const registry = await actor.ask('POST', `/organization/${actor.organizationId}/containerRegistry`, 201, body);
    const ports = [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }];
    return { registry_id: registry.id, image_name: 'acme/web', tag: '1.0', healthchecks: {}, ports };
  },
  database: () => ({ type: 'POSTGRESQL', version: '16', mode: 'MANAGED' }),
  terraform: (actor) => ({
    backend: { kubernetes: {} },
    terraform_files_source: { git: { git_repository: { url: actor.source, branch: 'main' } } },
    provider_version: { explicit_version: '1.11.4' },
  }),
};

/** Actions of the other kinds of services, beyond those that applications cover. */
const OTHER_ACTIONS: Omit<Scenario, 'stages'>[] = [
  ['container', 'deploy'],
  ['database', 'deploy'],
  ['database', 'uninstall'],
  ['terraform', 'deploy'],
  ['terraform', 'uninstall'],
].map(([kind, action]) => ({
  name: `${action} of a ${kind}`,
  deployed: action !== 'deploy',
  make: async (actor, environmentId, name) => {
    const body = { name, ...(await OTHERS[kind!]!(actor, name)) };
    return (await actor.ask('POST', `/environment/${environmentId}/${kind}`, 201, body)).id;
  },
  request: (actor, { services }) => actor.ask('POST', `/${kind}/${services['web']}/${action}`, 200, {}),
}));

/** Settings of the machines. Scenarios run two at a time, each on a machine of its own, because they mostly wait for processes to start. */
const settings = { QUARTERDECK_DATABASE_IMAGE_PREFIX: `${images.host}/` };
const machines = [useMachine(settings), useMachine(settings)];
const free = [...machines];

/** Number of environments that are created and deployed at a time. Each serves one worker that dies. */
const PLACES = 20;

async function makePlaces(machine: Machine, actor: HttpActor, { stages, deployed, make }: Scenario): Promise<Place[]> {
  const places: Place[] = [];
  for (let count = 0; count < PLACES; count++) {
    const id = await actor.environment(`project ${++made}`);
    const known = stages.length > 1 ? (await actor.ask('GET', `/environment/${id}/deploymentStage`, 200)).results : [];
    const services: Record<string, string> = {};
    for (const [stage, names] of stages.entries())
      for (const name of names) {
        services[name] = await (make ? make(actor, id, name) : actor.application(id, name));
        if (stages.length > 1)
          await actor.ask('PUT', `/deploymentStage/${known[stage].id}/service/${services[name]}`, 200);
      }
    if (deployed) await actor.ask('POST', `/environment/${id}/deploy`, 200);
    places.push({ id, services });
  }
  if (deployed) await carryOn(machine);
  return places;
}

/** Kill points at which workers die. */
const { first, step, seed } = strideOf(5);

/** Kills a worker at its first kill point, the next at a later one, until one completes the request. */
async function walk(machine: Machine, scenario: Scenario): Promise<void> {
  const actor = await machine.organization(`organization of ${scenario.name}`);
  const places = await makePlaces(machine, actor, scenario);
  const endState = ({ id, services }: Place) => readEndState(machine.db, machine.dataDir, id, services);
  const calm = places.pop()!;
  await scenario.request(actor, calm);
  await carryOn(machine);
  const expected = await endState(calm);
  // Differences from the expected end state, each with the kill points that lead to it.
  const wrong = new Map<string, string[]>();
  for (let dieAt = first, ended = false; !ended; dieAt += step) {
    if (places.length === 0) places.push(...(await makePlaces(machine, actor, scenario)));
    const place = places.pop()!;
    await scenario.request(actor, place);
    const child = startDyingWorker(machine, dieAt);
    await until('it dies or ends its work', async () => !child.running || (ended = await isSettled(machine)));
    if (ended) await child.kill();
    else await carryOn(machine);
    for (const difference of differences(await endState(place), expected))
      wrong.set(difference, [...(wrong.get(difference) ?? []), diedAt(child.output)]);
  }
  const found = [...wrong].map(([difference, where]) => `${difference}\n${where.join('\n')}`);
  expect(found, `SEED=${seed}`).toEqual([]);
  expect(await findFaults({ ...machine, organizationId: actor.organizationId })).toEqual([]);
}

const diedAt = (output: string): string =>
  /dies at [^]*/.exec(output)?.[0].replaceAll(/\s+/g, ' ').slice(0, 120) ?? 'not at all';

const isSettled = async ({ db }: Machine): Promise<boolean> =>
  !(await db.selectFrom('deployment').select('id').where('status', '<>', 'ENDED').limit(1).executeTakeFirst());

async function onFreeMachine(work: (machine: Machine) => Promise<void>): Promise<void> {
  const machine = free.pop()!;
  try {
    if (machine.processes.length === 0) await machine.start('api', { role: 'api' });
    await work(machine);
  } finally {
    free.push(machine);
  }
}

describe('a worker that is killed at any of its doings leaves the same as one that is not:', () => {
  test.concurrent.each([...ACTIONS, ...JOB_ACTIONS, ...OTHER_ACTIONS])('$name', { timeout: 300_000 }, (action) =>
    onFreeMachine((machine) => walk(machine, { ...action, stages: [['web']] })),
  );
  test.concurrent('deploy of three services in two stages', { timeout: 300_000 }, () =>
    onFreeMachine((machine) =>
      walk(machine, { ...ACTIONS[0]!, name: 'stages', stages: [['base'], ['left', 'right']] }),
    ),
  );
});
