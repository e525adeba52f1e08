import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { NoAnswer, type HttpActor, type HttpAnswer } from '#test/crash/harness/actor.ts';
import type { Machine } from '#test/crash/harness/machine.ts';
import type { ServiceProcess } from '#test/crash/harness/process.ts';
import { makeRandom, seedOf, type Random } from '#test/harness/random.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import type { Receiver } from '#test/crash/harness/receiver.ts';
import { until } from '#test/crash/harness/until.ts';
import { removeInstallation } from '#test/harness/remove-everything.ts';
import { findFaults, type Acknowledged, type World } from '#test/crash/harness/world.ts';

/** Number of kills between two checks of everything. */
const ROUND = 10;
const ACTORS = 3;
/** Milliseconds between two requests of a user. A real runtime builds and starts programs, so that its queue would grow too long. */
const PAUSE_MS = { fake: 50, real: 400 };
const ENVIRONMENTS = 2;
const SERVICES = 2;

/** Services that users have and act on. */
export interface Services {
  /** Kind of them, as paths name it. */
  kind: 'application' | 'container';
  /** Creates one in the environment and returns its id. */
  make(actor: HttpActor, environmentId: string, name: string): Promise<string>;
}

const APPLICATIONS: Services = { kind: 'application', make: (actor, id, name) => actor.application(id, name) };

/** User with environments and services, who makes random requests. */
class User {
  readonly acknowledged: Acknowledged = { deployments: [], deleted: [] };
  readonly wrong: string[] = [];
  requests = 0;
  readonly #actor: HttpActor;
  readonly #random: Random;
  readonly #machine: Machine;
  readonly #services: Services;
  readonly #environments: { id: string; services: string[] }[] = [];
  #names = 0;

  constructor(actor: HttpActor, random: Random, { machine, services = APPLICATIONS }: KillOptions) {
    this.#services = services;
    this.#actor = actor;
    this.#random = random;
    this.#machine = machine;
  }

  /** Creates missing environments and services. */
  async fill(): Promise<void> {
    while (this.#environments.length < ENVIRONMENTS)
      this.#environments.push({ id: await this.#actor.environment(`p ${++this.#names}`), services: [] });
    for (const { id, services } of this.#environments)
      while (services.length < SERVICES)
        services.push(await this.#services.make(this.#actor, id, `s ${++this.#names}`));
  }

  /** Makes one random request and records it if it succeeds. */
  async act(): Promise<void> {
    // An earlier creation may have met a killed process.
    await this.fill();
    const environment = this.#random.pick(this.#environments);
    const service = this.#random.pick(environment.services);
    const one = `/${this.#services.kind}/${service}`;
    const path = this.#random.pick([
      `${one}/deploy`,
      `${one}/deploy`,
      `${one}/redeploy`,
      `${one}/stop`,
      `${one}/restart-service`,
      `${one}/uninstall`,
      `/environment/${environment.id}/deploy`,
      `/environment/${environment.id}/stop`,
      `/environment/${environment.id}/cancelDeployment`,
      'delete',
    ]);
    this.requests++;
    if (path === 'delete') return this.#delete(environment, service);
    const answer = await this.#call('POST', path);
    if (answer?.status === 200 && answer.body.deployment_request_id)
      this.acknowledged.deployments.push({ id: answer.body.deployment_request_id, environmentId: environment.id });
    // 409: nothing to cancel, nothing runs, or a delete is under way.
    else if (answer && ![200, 409].includes(answer.status)) this.#tell(path, answer);
  }

  async #delete(environment: { services: string[] }, service: string): Promise<void> {
    const answer = await this.#call('DELETE', `/${this.#services.kind}/${service}`);
    if (answer && ![204, 404].includes(answer.status)) this.#tell('DELETE', answer);
    if (answer?.status === 204) this.acknowledged.deleted.push(service);
    // Without an answer the service may or may not be deleted: use another from now on.
    environment.services.splice(environment.services.indexOf(service), 1);
  }

  /** Records a wrong answer, with what its process logged about the request. */
  #tell(path: string, { status, body }: HttpAnswer): void {
    const said = this.#machine.processes.flatMap(({ output }) => output.split('\n'));
    const lines = said.filter((line) => body?.request_id && line.includes(body.request_id));
    const fault = [`${path} answered ${status}: ${JSON.stringify(body)}`, ...lines].join('\n');
    console.error(fault);
    this.wrong.push(fault);
  }

  async #call(method: string, path: string): Promise<HttpAnswer | undefined> {
    try {
      return await this.#actor.call(method, path);
    } catch (error) {
      if (error instanceof NoAnswer) return undefined;
      throw error;
    }
  }
}

/** Repeats a request that met a killed process, until an answer arrives. */
async function insist<T>(work: () => Promise<T>): Promise<T> {
  for (;;)
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
}

/** Returns violations of webhook delivery: an event with several ids, or a deployment that started and never ended. */
function webhookFaults(receiver: Receiver): string[] {
  const ids = new Map<string, Set<string>>();
  const open = new Set<string>();
  for (const { event, deployment, service, id } of receiver.calls) {
    const key = `${event} of ${service} in ${deployment}`;
    ids.set(key, (ids.get(key) ?? new Set()).add(id));
    if (event === 'DEPLOYMENT_STARTED') open.add(`${service} in ${deployment}`);
  }
  for (const { event, deployment, service } of receiver.calls)
    if (event !== 'DEPLOYMENT_STARTED') open.delete(`${service} in ${deployment}`);
  return [
    ...[...ids].filter(([, set]) => set.size > 1).map(([key, set]) => `${key} was told under ${set.size} ids`),
    ...[...open].map((key) => `${key} was told to have started, and never to have ended`),
  ];
}

/** Options of `killAtRandom`. */
export interface KillOptions {
  machine: Machine;
  receiver: Receiver;
  kills: number;
  /** Runtime that is asked which workloads run; without it the fake runtime's folder is read. */
  runtime?: Runtime;
  /** Administrators of organizations that are there; by default three are made, with clusters on the runtime. */
  actors?: HttpActor[];
  /** Services that are acted on; by default applications. */
  services?: Services;
}

/**
 * Kills processes at random instants and starts them again while several users make requests. After each round, once all is quiet, nothing
 * may be lost, duplicated, or left in progress. SEED repeats a run.
 */
export async function killAtRandom(options: KillOptions): Promise<void> {
  const { machine, receiver, kills, runtime } = options;
  const seed = seedOf();
  console.log(`SEED=${seed}`);
  const random = makeRandom(seed);
  const users: User[] = [];
  for (const actor of options.actors ?? (await makeActors(machine, runtime))) {
    await actor.ask('POST', `/organization/${actor.organizationId}/webhook`, 201, {
      target_url: receiver.url,
      events: ['DEPLOYMENT_STARTED', 'DEPLOYMENT_SUCCESSFUL', 'DEPLOYMENT_FAILURE', 'DEPLOYMENT_CANCELLED'],
      enabled: true,
    });
    users.push(new User(actor, makeRandom(random.below(2 ** 31)), options));
    await users.at(-1)!.fill();
  }
  // On a busy machine few of the first deployments may come to their end: the kills go on until enough have.
  for (let killed = 0; killed < kills || (await countSucceeded(machine)) <= kills / 2;) {
    expect(killed, 'kills, after which too few deployments have succeeded').toBeLessThan(5 * kills);
    let working = true;
    const work = users.map(async (user) => {
      for (; working; await sleep(runtime ? PAUSE_MS.real : PAUSE_MS.fake)) await insist(() => user.act());
    });
    try {
      const most = killed < kills ? kills : killed + kills;
      for (const end = Math.min(most, killed + ROUND); killed < end; killed++) await killOne(machine, random);
    } finally {
      working = false;
      await Promise.all(work);
    }
    await machine.settled(runtime ? 360_000 : 180_000);
    await until('webhooks are told', async () => {
      const { rows } = await sql<{ n: number }>`select (select count(*) from outbox) +
        (select count(*) from webhook_delivery where state = 'PENDING') as n`.execute(machine.db);
      return rows[0]!.n === 0;
    });
    const acknowledged = {
      deployments: users.flatMap((user) => user.acknowledged.deployments),
      deleted: users.flatMap((user) => user.acknowledged.deleted),
    };
    const really: Partial<World> = runtime
      ? { observe: (handle) => runtime.observe(handle), list: () => runtime.list!() }
      : {};
    const faults = await findFaults({ ...machine, ...really }, acknowledged);
    const all = [...faults, ...webhookFaults(receiver), ...users.flatMap((user) => user.wrong)];
    expect(all, `SEED=${seed}, after ${killed} kills`).toEqual([]);
  }
  const requests = users.reduce((sum, user) => sum + user.requests, 0);
  console.log(`${requests} requests, ${await countSucceeded(machine)} deployments succeeded`);
}

async function countSucceeded({ db }: Machine): Promise<number> {
  const { n } = await db
    .selectFrom('deployment')
    .select(sql<number>`count(*)`.as('n'))
    .where('outcome', '=', 'SUCCESS')
    .executeTakeFirstOrThrow();
  return n;
}

async function makeActors(machine: Machine, runtime: Runtime | undefined): Promise<HttpActor[]> {
  const node = runtime ? await machine.nodeId() : null;
  const actors: HttpActor[] = [];
  for (let index = 0; index < ACTORS; index++)
    actors.push(await machine.organization(`organization ${index}`, { runtime: runtime?.name, node }));
  return actors;
}

/** Kills a process at a random instant and starts it again. */
async function killOne(machine: Machine, random: Random): Promise<void> {
  const instant = performance.now() + random.below(600);
  await until('the instant has come', () => performance.now() >= instant);
  const victim: ServiceProcess = random.pick(machine.processes);
  await victim.kill();
  await machine.again(victim);
}

/** Removes all workloads of the machine's installation from a real runtime, whatever the outcome of the test. */
export async function removeAll(machine: Machine, runtime: Runtime): Promise<void> {
  for (const process of machine.processes) await process.kill();
  await removeInstallation(runtime, machine.db, machine.installation.id);
}
