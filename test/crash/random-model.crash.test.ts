import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWorker } from '#app/engine.ts';
import { createSources } from '#app/git.ts';
import { generationOf } from '#deployments/executor/engine.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { createFakeRuntime } from '#runtimes/fake/index.ts';
import { createDirectoryStore } from '#runtimes/fake/store.ts';
import { untilSettled } from '#test/crash/harness/machine.ts';
import { replay, type Ended, type ModelRequest, type ModelService } from '#test/crash/harness/model.ts';
import { makeRandom, seedOf, type Random } from '#test/harness/random.ts';
import { findFaults } from '#test/crash/harness/world.ts';
import { ok, useApp, type Actor, type Answer } from '#test/harness/app.ts';
import { exampleBody } from '#test/harness/engine.ts';

/** Rounds of requests, each followed by a check of everything. */
const ROUNDS = process.env.SOAK ? 500 : 12;
const REQUESTS = 14;
const ENVIRONMENTS = 3;
const SERVICES = 2;

const app = useApp();
const stops: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  const { settings } = app.platform;
  for (const name of ['one', 'two']) {
    const nodeId = newId();
    await app.db.insertInto('node').values({ id: nodeId, name }).execute();
    const runtime = createFakeRuntime({
      directory: path.join(settings.dataDir, 'fake'),
      delayMs: { build: 20, submit: 60, stop: 30, restart: 30, remove: 30 },
    });
    const worker = createWorker(
      {
        settings,
        platform: app.platform,
        engineDatabase: app.database,
        directConfig: app.databaseConfig,
        nodeId,
        installation: { id: app.installationId, epoch: 1 },
      },
      { runtimeOf: async () => runtime },
      createSources(app.platform),
    );
    await worker.start();
    stops.push(async () => {
      await worker.stop();
      await runtime.close();
    });
  }
});
afterAll(() => Promise.all(stops.map((stop) => stop())));

/** Environment in which several users make requests, and the model of it. */
class Place {
  readonly services: ModelService[] = [];
  readonly gone: string[] = [];
  readonly requests = new Map<string, ModelRequest>();
  /** Log of requests and answers, printed when a check fails. */
  readonly story: string[] = [];
  readonly #people: Actor[];
  readonly #random: Random;
  #id = '';
  #names = 0;
  /** Serializes the requests of one environment, so that the model knows their order; deployments run in the meantime. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(people: Actor[], random: Random) {
    this.#people = people;
    this.#random = random;
  }

  get id(): string {
    return this.#id;
  }

  async make(name: string): Promise<void> {
    const [admin] = this.#people as [Actor];
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name }), 201);
    this.#id = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e', mode: 'PRODUCTION' }), 201).id;
    await this.fill();
  }

  async fill(): Promise<void> {
    while (this.services.length < SERVICES) {
      const name = `s${++this.#names}`;
      const body = exampleBody({ name, cpu: 100, ports: [] });
      const { id } = ok(await this.#people[0]!.post(`/environment/${this.id}/application`, body), 201);
      this.services.push({ id, name, cpu: 100, edits: 0, deleting: false });
    }
  }

  /** Makes a random request as a random user. */
  act(): Promise<void> {
    const doing = this.#turn.then(() => this.#act());
    this.#turn = doing.catch(() => undefined);
    return doing;
  }

  async #act(): Promise<void> {
    const person = this.#random.pick(this.#people);
    const service = this.#random.pick(this.services);
    const one = `/application/${service.id}`;
    const all = `/environment/${this.id}`;
    const whole = this.services.filter((each) => !each.deleting);
    const say = (what: string, answer: Answer) =>
      this.story.push(
        `${what} -> ${answer.status} ${answer.body?.deployment_request_id ?? answer.body?.message ?? ''}`,
      );
    switch (this.#random.below(13)) {
      case 0:
      case 1:
      case 2: {
        const verb = this.#random.pick(['deploy', 'redeploy']);
        const answer = await person.post(`${one}/${verb}`);
        say(`${verb} ${service.name}`, answer);
        return await this.#took(answer, [service]);
      }
      case 3: {
        const answer = await person.post(`${all}/deploy`);
        say('deploy all', answer);
        return await this.#took(answer, whole);
      }
      case 4:
      case 5: {
        service.cpu += 10;
        const answer = await person.put(one, exampleBody({ name: service.name, cpu: service.cpu, ports: [] }));
        say(`edit ${service.name} to ${service.cpu}`, answer);
        if (service.deleting) return this.#allowed(answer, [200, 404, 409], service);
        ok(answer, 200);
        service.edits++;
        return;
      }
      case 6: {
        const answer = await person.post(`${one}/stop`);
        say(`stop ${service.name}`, answer);
        return this.#allowed(answer, service.deleting ? [200, 404, 409] : [200]);
      }
      case 7: {
        const answer = await person.post(`${one}/restart-service`);
        say(`restart ${service.name}`, answer);
        return this.#allowed(answer, service.deleting ? [200, 404, 409] : [200, 409]);
      }
      case 8: {
        const answer = await person.post(`${one}/uninstall`);
        say(`uninstall ${service.name}`, answer);
        return this.#allowed(answer, service.deleting ? [200, 404, 409] : [200]);
      }
      case 9: {
        const answer = await person.delete(one);
        say(`delete ${service.name}`, answer);
        service.deleting = true;
        return this.#allowed(answer, [204, 404]);
      }
      case 10:
      case 11: {
        const force_cancel = this.#random.below(2) === 0;
        const answer = await person.post(`${all}/cancelDeployment`, { force_cancel });
        say(force_cancel ? 'cancel by force' : 'cancel', answer);
        return this.#allowed(answer, [200, 409]);
      }
      default:
        return this.#rollBack(person);
    }
  }

  async #rollBack(person: Actor): Promise<void> {
    const { rows } = await sql<{ id: string; number: number }>`select id, number from deployment
      where environment_id = ${this.id} and action = 'DEPLOY' and outcome = 'SUCCESS' and whole_environment order by number`.execute(
      app.db,
    );
    if (rows.length === 0) return;
    const target = this.#random.pick(rows);
    const answer = await person.post(`/environment/${this.id}/rollback`, {
      execution_id: `${this.id}-${target.number}`,
    });
    this.story.push(
      `roll back to ${target.number} -> ${answer.status} ${answer.body.deployment_request_id ?? answer.body.message}`,
    );
    this.#allowed(answer, [200, 409]);
    if (answer.status !== 200) return;
    this.requests.set(await this.#last(), {
      taken: this.requests.get(target.id)!.taken,
      rollback: true,
    });
  }

  /** Returns the last deployment, which a request has just created or joined (the answer names the running one). */
  async #last(): Promise<string> {
    const { id } = await app.db
      .selectFrom('deployment')
      .select('id')
      .where('environment_id', '=', this.id)
      .orderBy('number', 'desc')
      .limit(1)
      .executeTakeFirstOrThrow();
    return id;
  }

  /** Records that a deploy request succeeded: it applies the current configuration, also if it joined a waiting deployment. */
  async #took(answer: Answer, services: ModelService[]): Promise<void> {
    const deleting = services.some((service) => service.deleting) || services.length === 0;
    this.#allowed(answer, deleting ? [200, 404, 409] : [200]);
    if (answer.status !== 200) return;
    const id = await this.#last();
    const taken = new Map(this.services.map(({ id: service, cpu, edits }) => [service, { cpu, edits }]));
    this.requests.set(id, { taken, rollback: false });
  }

  #allowed(answer: Answer, statuses: number[], edited?: ModelService): void {
    expect(statuses, JSON.stringify(answer.body)).toContain(answer.status);
    // A delete that was cancelled in the meantime leaves a service that can be edited.
    if (edited) {
      if (answer.status === 200) edited.edits++;
      else edited.cpu -= 10;
    }
  }

  /** Reads the ended deployments. */
  async #ended(): Promise<Ended[]> {
    const has = (which: ReturnType<typeof sql>) => sql`exists (
      select from deployment_step t where t.deployment_id = d.id and t.service_id = s.service_id and ${which})`;
    const { rows } = await sql<Ended>`select d.id, d.number, d.action, d.cancel_forced as forced,
        (select json_agg(json_build_object('id', s.service_id, 'state', s.state, 'began', ${has(sql`true`)},
          'applied', ${has(sql`t.name = 'DEPLOYMENT'`)}, 'cut', ${has(sql`t.status = 'CANCEL' and t.error is null`)}))
          from deployment_service s where s.deployment_id = d.id) as services
      from deployment d where d.environment_id = ${this.id} order by d.number`.execute(app.db);
    return rows.map((row) => ({ ...row, services: row.services ?? [] }));
  }

  /** Returns differences from the model, a sentence each. */
  async compare(): Promise<string[]> {
    const ended = await this.#ended();
    const store = createDirectoryStore(path.join(app.platform.settings.dataDir, 'fake'));
    const wrong: string[] = [];
    for (const { number, forced, services } of ended)
      for (const { id, cut } of services)
        if (cut && !forced) wrong.push(`${id}: a step of deployment ${number} was cancelled without a message`);
    for (const service of this.services) {
      const expected = replay(service.id, ended, this.requests);
      const row = await app.db
        .selectFrom('service')
        .leftJoin('release', 'release.id', 'service.release_id')
        .leftJoin('deployment', 'deployment.id', 'release.deployment_id')
        .select(['service.wanted', 'service.dirty', 'service.deleting', 'service.handle', 'deployment.number'])
        .where('service.id', '=', service.id)
        .executeTakeFirst();
      const say = (what: string) => wrong.push(`${service.name} (${service.id}): ${what}`);
      const found = store.read(service.id);
      const nothingEver = service.deleting && expected.state === null;
      if (expected.gone || (nothingEver && !row)) {
        if (row) say('is deleted, and in its table');
        if (found) say('is deleted, and runs');
        this.services.splice(this.services.indexOf(service), 1);
        continue;
      }
      if (!row) {
        // Services that were never applied have nothing to remove: they are deleted at once.
        if (!service.deleting || expected.wanted !== 'absent') say('is gone');
        this.services.splice(this.services.indexOf(service), 1);
        continue;
      }
      service.deleting = row.deleting;
      if (row.deleting) say('is being deleted, and nothing is under way');
      if (row.wanted !== expected.wanted) say(`is wanted ${row.wanted}, not ${expected.wanted}`);
      if ((row.number ?? null) !== (expected.release?.number ?? null))
        say(`has the release ${row.number}, not ${expected.release?.number ?? null}`);
      if (expected.dirty !== null && row.dirty !== expected.dirty) say(`is ${row.dirty ? '' : 'not '}dirty`);
      const status = ok(await this.#people[0]!.get(`/application/${service.id}/status`), 200);
      if (status.state !== (expected.state ?? 'READY')) say(`shows ${status.state}, not ${expected.state ?? 'READY'}`);
      const { release } = expected;
      const current = !release ? 'NEVER_DEPLOYED' : release.edits === service.edits ? 'UP_TO_DATE' : 'OUT_OF_DATE';
      if (!release?.rollback && status.service_deployment_status !== current)
        say(`shows ${status.service_deployment_status}, not ${current}`);
      if (expected.unsure) continue;
      const running = found && !found.stopped;
      if (Boolean(running) !== (expected.wanted === 'running'))
        say(`${running ? 'runs' : 'does not run'} and is wanted ${expected.wanted}`);
      if (!running) continue;
      if (found.spec.identity.generation !== generationOf(1, release?.number ?? 0))
        say(`runs generation ${found.spec.identity.generation % 2 ** 32}, not ${release?.number}`);
      if (found.spec.resources.cpuMilli !== release?.cpu)
        say(`runs with ${found.spec.resources.cpuMilli} milli-CPU, not ${release?.cpu}`);
    }
    return wrong.length > 0 ? [...wrong, ...this.story.slice(-40), JSON.stringify(ended.slice(-12))] : [];
  }
}

test(
  `${ROUNDS} rounds of random requests by several people leave what a small model of the engine says`,
  { timeout: process.env.SOAK ? 6 * 3_600_000 : 240_000 },
  async () => {
    const seed = seedOf();
    console.log(`SEED=${seed}`);
    const random = makeRandom(seed);
    const admin = await app.organization();
    const people = [admin, await admin.withScope('ADMIN'), await admin.withScope('ADMIN')];
    const places: Place[] = [];
    for (let index = 0; index < ENVIRONMENTS; index++) {
      places.push(new Place(people, makeRandom(random.below(2 ** 31))));
      await places.at(-1)!.make(`p${index}`);
    }
    for (let round = 1; round <= ROUNDS; round++) {
      await Promise.all(
        places.map(async (place) => {
          for (let request = 0; request < REQUESTS; request++) {
            await place.act();
            await new Promise((resolve) => setTimeout(resolve, random.below(60)));
          }
        }),
      );
      await untilSettled(app.db, 60_000);
      for (const place of places) expect(await place.compare(), `SEED=${seed}, round ${round}`).toEqual([]);
      const world = {
        db: app.db,
        dataDir: app.platform.settings.dataDir,
        installation: { id: app.installationId, epoch: 1 },
      };
      expect(await findFaults(world), `SEED=${seed}, round ${round}`).toEqual([]);
      for (const place of places) await place.fill();
    }
  },
);
