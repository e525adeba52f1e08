import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { LEASE_SECONDS } from '#deployments/executor/claims.ts';
import { sql } from '#platform/database/index.ts';
import type { HttpActor } from '#test/crash/harness/actor.ts';
import { clearJournal, readJournal, setFaults } from '#test/crash/harness/faults.ts';
import { useMachine } from '#test/crash/harness/machine.ts';
import type { ServiceProcess } from '#test/crash/harness/process.ts';
import { startReceiver, type Receiver } from '#test/crash/harness/receiver.ts';
import { until } from '#test/crash/harness/until.ts';
import { findFaults } from '#test/crash/harness/world.ts';

/** Requests per hour and token; the other tests stay far below. */
const RATE_LIMIT = 1000;
const ORGANIZATION_SLOTS = 3;

const machine = useMachine({
  QUARTERDECK_RATE_LIMIT_PER_HOUR: String(RATE_LIMIT),
  QUARTERDECK_ORGANIZATION_SLOTS: String(ORGANIZATION_SLOTS),
  QUARTERDECK_WORKER_SLOTS: '2',
});
let apis: ServiceProcess[];
let workers: ServiceProcess[];
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  const api = await machine.start('api 1', { role: 'api' });
  apis = [api, await machine.start('api 2', { role: 'api' })];
  workers = [await machine.start('worker 1', { role: 'worker' }), await machine.start('worker 2', { role: 'worker' })];
});
afterAll(() => receiver.close());
beforeEach(() => setFaults(machine.dataDir, {}));

/** Creates an organization with `count` environments, each with one application. */
async function manyApplications(
  name: string,
  count: number,
): Promise<{ actor: HttpActor; environments: string[]; applications: string[] }> {
  const actor = await machine.organization(name);
  const environments: string[] = [];
  const applications: string[] = [];
  for (let index = 0; index < count; index++) {
    const environment = await actor.environment(`p ${index}`);
    environments.push(environment);
    applications.push(await actor.application(environment, 'hello'));
  }
  return { actor, environments, applications };
}

const deployAll = (actor: HttpActor, applications: string[]) =>
  Promise.all(applications.map((id) => actor.ask('POST', `/application/${id}/deploy`, 200)));

/** Returns the number of running deployments of each worker. */
const load = async (): Promise<number[]> =>
  (
    await sql<{ n: number }>`select count(*) as n from deployment
      where status in ('RUNNING', 'RECAP') and worker_id is not null group by worker_id`.execute(machine.db)
  ).rows.map((row) => row.n);

/** Returns, for each deployment that has not ended, its number of attempts without a finished step since. */
const attempts = async (): Promise<number[]> =>
  (await machine.db.selectFrom('deployment').select('attempts').where('status', '<>', 'ENDED').execute()).map(
    (row) => row.attempts,
  );

test('work spreads over the workers, and what a killed one had goes on elsewhere before its lease ends', async () => {
  const { actor, environments, applications } = await manyApplications('spreads', ORGANIZATION_SLOTS);
  clearJournal(machine.dataDir);
  setFaults(machine.dataDir, { delayMs: { submit: 3_000 } });
  const answers = await deployAll(actor, applications);
  // Each worker has two slots: one worker runs two of the three deployments, the other runs one.
  await until(
    'all of them are being applied',
    async () => (await load()).reduce((sum, n) => sum + n, 0) === ORGANIZATION_SLOTS,
  );
  expect((await load()).toSorted()).toEqual([1, 2]);
  const builds = (pid: number) =>
    readJournal(machine.dataDir).filter((call) => call.verb === 'build' && call.pid === pid);
  await until('all are built', () => workers.flatMap(({ pid }) => builds(pid)).length === ORGANIZATION_SLOTS);
  const busy = workers.findIndex(({ pid }) => builds(pid).length === 2);
  await workers[busy]!.kill();
  const killed = performance.now();
  // One of the two takes the free slot of the other worker; the third waits for a slot, not for a lease.
  await until('the other worker has taken one over', async () => (await attempts()).filter((n) => n > 1).length === 1);
  // Leases are renewed every 3 s: none that the killed one held has ended yet.
  expect(performance.now() - killed).toBeLessThan((LEASE_SECONDS - 3) * 1_000);
  await machine.settled();
  const deployments = answers.map((answer, index) => ({
    id: answer.deployment_request_id,
    environmentId: environments[index]!,
  }));
  expect(await findFaults(machine, { deployments, deleted: [] })).toEqual([]);
  for (const id of applications)
    expect((await actor.ask('GET', `/application/${id}/status`, 200)).state).toBe('DEPLOYED');
  workers[busy] = await machine.again(workers[busy]!);
});

test('an organization has no more running than its limit, over all workers', async () => {
  const { actor, applications } = await manyApplications('limited', 3 * ORGANIZATION_SLOTS);
  setFaults(machine.dataDir, { delayMs: { submit: 200 } });
  await deployAll(actor, applications);
  await machine.settled();
  const { rows } = await sql<{ most: number }>`
    select max((select count(*) from deployment b where b.organization_id = a.organization_id and b.started_at <= a.started_at and b.ended_at > a.started_at)) as most
    from deployment a where organization_id = ${actor.organizationId}`.execute(machine.db);
  expect(rows[0]!.most).toBeLessThanOrEqual(ORGANIZATION_SLOTS);
  expect(await findFaults(machine)).toEqual([]);
});

test('a recurring task that is due is run by one process, once', async () => {
  await sql`create table if not exists task_claim (name text)`.execute(machine.db);
  await sql`create or replace function note_claim() returns trigger language plpgsql as $$ begin
    if new.lock_token is not null and new.lock_token is distinct from old.lock_token then insert into task_claim values (new.name); end if;
    return new; end $$`.execute(machine.db);
  await sql`create or replace trigger note_claim before update on scheduled_task for each row execute function note_claim()`.execute(
    machine.db,
  );
  const { rows: tasks } = await sql<{ name: string }>`
    update scheduled_task set next_at = clock_timestamp(), last_ended_at = null returning name`.execute(machine.db);
  const due = tasks.map(({ name }) => name);
  expect(due.length).toBeGreaterThan(3);
  await until('all have run', async () => {
    const { rows } = await sql<{
      n: number;
    }>`select count(*) as n from scheduled_task where last_ended_at is null`.execute(machine.db);
    return rows[0]!.n === 0;
  });
  const { rows } = await sql<{
    name: string;
    n: number;
  }>`select name, count(*) as n from task_claim group by 1 order by 1`.execute(machine.db);
  expect(rows).toEqual(due.sort().map((name) => ({ name, n: 1 })));
  const { rows: errors } = await sql`select name, last_error from scheduled_task where last_error is not null`.execute(
    machine.db,
  );
  expect(errors).toEqual([]);
  await sql`drop trigger note_claim on scheduled_task`.execute(machine.db);
});

test('the rate limit of a token holds over all API processes', async () => {
  const actor = await machine.organization('eager');
  const statuses: number[] = [];
  const total = RATE_LIMIT + 100;
  const ask = async (count: number) => {
    for (; statuses.length < count;) statuses.push((await actor.call('GET', '/account')).status);
  };
  await Promise.all(Array.from({ length: 8 }, () => ask(total)));
  const passed = statuses.filter((status) => status !== 429).length;
  expect(Math.abs(passed - RATE_LIMIT)).toBeLessThanOrEqual(RATE_LIMIT / 100);
});

test('a token that one process has revoked is refused by the other at once', async () => {
  const actor = await machine.organization('revoking');
  const made = await actor.ask('POST', `/organization/${actor.organizationId}/apiToken`, 201, {
    name: 'short',
    scope: 'READ',
  });
  const at = (api: ServiceProcess) =>
    fetch(`${api.url}/organization`, { headers: { authorization: `Token ${made.token}` } }).then(
      ({ status }) => status,
    );
  // Both servers have read it, so that their caches hold it.
  for (const api of [...apis, ...apis]) expect(await at(api)).toBe(200);
  expect((await actor.call('DELETE', `/organization/${actor.organizationId}/apiToken/${made.id}`)).status).toBe(204);
  for (const api of [...apis, ...apis]) expect(await at(api)).toBe(401);
});

test('each event is told to a webhook once, by whichever worker', async () => {
  const { actor, applications } = await manyApplications('told', 6);
  await actor.ask('POST', `/organization/${actor.organizationId}/webhook`, 201, {
    target_url: receiver.url,
    events: ['DEPLOYMENT_STARTED', 'DEPLOYMENT_SUCCESSFUL'],
    enabled: true,
  });
  const answers = await deployAll(actor, applications);
  await machine.settled();
  const wanted = answers
    .flatMap((answer, index) =>
      ['DEPLOYMENT_STARTED', 'DEPLOYMENT_SUCCESSFUL'].map(
        (event) => `${event} ${answer.deployment_request_id} ${applications[index]}`,
      ),
    )
    .sort();
  await until('every delivery is done', async () => {
    const { rows } = await sql<{
      n: number;
    }>`select (select count(*) from outbox) + (select count(*) from webhook_delivery where state = 'PENDING') as n`.execute(
      machine.db,
    );
    return rows[0]!.n === 0;
  });
  const told = receiver.calls.map((call) => `${call.event} ${call.deployment} ${call.service}`).sort();
  expect(told).toEqual(wanted);
  expect(new Set(receiver.calls.map((call) => call.id)).size).toBe(told.length);
});

test(
  'a rolling restart of all processes under load fails no deployment, and no request of a client that repeats a broken one',
  { timeout: 180_000 },
  async () => {
    // Each in an organization of its own, so that none uses up its token's rate limit.
    const places = await Promise.all([1, 2, 3].map((index) => manyApplications(`rolling ${index}`, 1)));
    setFaults(machine.dataDir, { delayMs: { submit: 100 } });
    let restarting = true;
    let requests = 0;
    const acknowledged: { id: string; environmentId: string }[] = [];
    const refused: string[] = [];
    let broken = 0;
    const onBreak = () => void broken++;
    const use = async ({ actor, environments: [environment], applications: [application] }: (typeof places)[0]) => {
      for (; restarting; requests += 2) {
        const answer = await actor.askUntilAnswered('POST', `/application/${application}/deploy`, 200, onBreak);
        acknowledged.push({ id: answer.deployment_request_id, environmentId: environment! });
        await actor.askUntilAnswered('GET', `/environment/${environment}/status`, 200, onBreak);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    };
    const loads = places.map((place) => use(place).catch((error: Error) => void refused.push(error.message)));
    try {
      for (const process of [...apis, ...workers]) {
        expect(await process.terminate()).toBe(0);
        const again = await machine.again(process);
        for (const list of [apis, workers]) if (list.includes(process)) list.splice(list.indexOf(process), 1, again);
      }
    } finally {
      restarting = false;
      await Promise.all(loads);
    }
    expect(refused).toEqual([]);
    // The kernel resets a connection that arrives in the moment in which a process ends listening.
    expect(broken).toBeLessThanOrEqual(2);
    expect(requests).toBeGreaterThan(20);
    await machine.settled();
    expect(await findFaults(machine, { deployments: acknowledged, deleted: [] })).toEqual([]);
    const { rows } = await sql`select outcome, error from deployment where outcome <> 'SUCCESS'`.execute(machine.db);
    expect(rows).toEqual([]);
  },
);
