import { afterAll, beforeAll, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { NoAnswer, type HttpActor, type HttpAnswer } from '#test/crash/harness/actor.ts';
import { setFaults } from '#test/crash/harness/faults.ts';
import { useMachine } from '#test/crash/harness/machine.ts';
import type { ServiceProcess } from '#test/crash/harness/process.ts';
import { makeRandom, seedOf, type Random } from '#test/crash/harness/random.ts';
import { startReceiver, type Receiver } from '#test/crash/harness/receiver.ts';
import { until } from '#test/crash/harness/until.ts';
import { findFaults, type Acknowledged } from '#test/crash/harness/world.ts';

/** Enough for a few minutes in CI; the soak goes on for hours. */
const KILLS = process.env.SOAK ? 1000 : 50;
/** The world is looked at whenever so many were killed. */
const ROUND = 10;
const ACTORS = 3;
const ENVIRONMENTS = 2;
const SERVICES = 2;

const machine = useMachine({ QUARTERDECK_WORKER_SLOTS: '4' });
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
  await machine.start('api 1', { role: 'api' });
  await machine.start('all', { role: 'all' });
  await machine.start('worker', { role: 'worker' });
});
afterAll(() => receiver.close());

/** Somebody with environments and services, who asks for this and that. */
class User {
  readonly acknowledged: Acknowledged = { deployments: [], deleted: [] };
  readonly wrong: string[] = [];
  requests = 0;
  readonly #actor: HttpActor;
  readonly #random: Random;
  readonly #environments: { id: string; services: string[] }[] = [];
  #names = 0;

  constructor(actor: HttpActor, random: Random) {
    this.#actor = actor;
    this.#random = random;
  }

  /** Makes what is missing of the environments and services. */
  async fill(): Promise<void> {
    while (this.#environments.length < ENVIRONMENTS)
      this.#environments.push({ id: await this.#actor.environment(`p ${++this.#names}`), services: [] });
    for (const { id, services } of this.#environments)
      while (services.length < SERVICES) services.push(await this.#actor.application(id, `s ${++this.#names}`));
  }

  /** One request; what is answered with success is remembered. */
  async act(): Promise<void> {
    const environment = this.#random.pick(this.#environments);
    const service = this.#random.pick(environment.services);
    const path = this.#random.pick([
      `/application/${service}/deploy`,
      `/application/${service}/deploy`,
      `/application/${service}/redeploy`,
      `/application/${service}/stop`,
      `/application/${service}/restart-service`,
      `/application/${service}/uninstall`,
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
    // 409: nothing to cancel, nothing that runs, or something is being deleted.
    else if (answer && ![200, 409].includes(answer.status))
      this.wrong.push(`${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  }

  async #delete(environment: { services: string[] }, service: string): Promise<void> {
    const answer = await this.#call('DELETE', `/application/${service}`);
    if (answer && ![204, 404].includes(answer.status))
      this.wrong.push(`DELETE answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    if (answer?.status === 204) this.acknowledged.deleted.push(service);
    // Without an answer it may be deleted or not: others are used from now on.
    environment.services.splice(environment.services.indexOf(service), 1);
    await this.fill();
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

/** Tries again what met a killed process, for what is only there to be had. */
async function insist<T>(work: () => Promise<T>): Promise<T> {
  for (;;)
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
}

/** Every event is told under one id, however often, and what is told to have started is told to have ended. */
function webhookFaults(): string[] {
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

test(
  `processes are killed ${KILLS} times at random while several people work: nothing is lost, twice, or left in progress`,
  { timeout: process.env.SOAK ? 6 * 3_600_000 : 480_000 },
  async () => {
    const seed = seedOf();
    console.log(`SEED=${seed}`);
    const random = makeRandom(seed);
    setFaults(machine.dataDir, { delayMs: { build: 50, apply: 150, remove: 50, stop: 50, restart: 50 } });
    const users: User[] = [];
    for (let index = 0; index < ACTORS; index++) {
      const actor = await machine.organization(`organization ${index}`);
      await actor.ask('POST', `/organization/${actor.organizationId}/webhook`, 201, {
        target_url: receiver.url,
        events: ['DEPLOYMENT_STARTED', 'DEPLOYMENT_SUCCESSFUL', 'DEPLOYMENT_FAILURE', 'DEPLOYMENT_CANCELLED'],
        enabled: true,
      });
      users.push(new User(actor, makeRandom(random.below(2 ** 31))));
      await users.at(-1)!.fill();
    }
    for (let killed = 0; killed < KILLS;) {
      let working = true;
      const work = users.map(async (user) => {
        for (; working; await new Promise((resolve) => setTimeout(resolve, 50))) await insist(() => user.act());
      });
      try {
        for (const end = killed + ROUND; killed < end; killed++) await killOne(random);
      } finally {
        working = false;
        await Promise.all(work);
      }
      await machine.settled(90_000);
      await until('webhooks are told', async () => {
        const { rows } = await sql<{ n: number }>`select (select count(*) from outbox) +
          (select count(*) from webhook_delivery where state = 'PENDING') as n`.execute(machine.db);
        return rows[0]!.n === 0;
      });
      const faults = await findFaults(machine, {
        deployments: users.flatMap((user) => user.acknowledged.deployments),
        deleted: users.flatMap((user) => user.acknowledged.deleted),
      });
      expect(
        [...faults, ...webhookFaults(), ...users.flatMap((user) => user.wrong)],
        `SEED=${seed}, after ${killed} kills`,
      ).toEqual([]);
    }
    const { rows } = await sql<{ n: number; again: number }>`
      select count(*) as n, count(*) filter (where outcome = 'SUCCESS') as again from deployment`.execute(machine.db);
    console.log(
      `${KILLS} kills, ${users.reduce((sum, user) => sum + user.requests, 0)} requests, ${rows[0]!.n} deployments, ${rows[0]!.again} of them succeeded`,
    );
    expect(rows[0]!.again).toBeGreaterThan(KILLS / 2);
  },
);

/** Kills a process at a random instant and starts it again. */
async function killOne(random: Random): Promise<void> {
  const instant = performance.now() + random.below(600);
  await until('the instant has come', () => performance.now() >= instant);
  const victim: ServiceProcess = random.pick(machine.processes);
  await victim.kill();
  await machine.again(victim);
}
