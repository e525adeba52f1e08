import { afterEach, beforeEach, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import type { HttpActor } from '#test/crash/harness/actor.ts';
import { makeMachine, type Machine } from '#test/crash/harness/machine.ts';
import { startOwnPostgres, type OwnPostgres } from '#test/crash/harness/postgres.ts';
import { until } from '#test/crash/harness/until.ts';
import { findFaults } from '#test/crash/harness/world.ts';

let postgres: OwnPostgres;
let machine: Machine;
let actor: HttpActor;

beforeEach(async () => {
  postgres = await startOwnPostgres();
  machine = await makeMachine({ database: postgres.direct, processes: postgres.relayed });
  await machine.start('api', { role: 'api' });
  await machine.start('worker', { role: 'worker' });
  actor = await machine.organization('failover');
});
afterEach(async () => {
  await machine?.close();
  await postgres?.close();
});

let made = 0;

/** Waits until the API takes changes: a standby answers reads before it is promoted. Each other answer in between is 503. */
const isServing = () =>
  until(
    'the API takes changes',
    async () => {
      const answer = await actor.call('POST', `/organization/${actor.organizationId}/project`, {
        name: `asked ${++made}`,
      });
      if (answer.status !== 201) expect(answer.status, JSON.stringify(answer.body)).toBe(503);
      return answer.status === 201;
    },
    30_000,
    100,
  );

const numberOf = async (deployment: string): Promise<number> =>
  (await machine.db.selectFrom('deployment').select('number').where('id', '=', deployment).executeTakeFirstOrThrow())
    .number;

/** Reads the stream of audit events from a cursor until a text has come; returns all of it. */
async function read(cursor: string | undefined, text: string): Promise<string> {
  const answer = await fetch(
    `${machine.processes[0]!.url}/organization/${actor.organizationId}/eventStream?types=audit`,
    {
      headers: { Authorization: `Token ${actor.token}`, ...(cursor === undefined ? {} : { 'Last-Event-ID': cursor }) },
      signal: AbortSignal.timeout(20_000),
    },
  );
  let seen = '';
  for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) {
    seen += part;
    if (seen.includes(text)) break;
  }
  return seen;
}

const lastCursor = (stream: string): string => [...stream.matchAll(/^id: (.+)$/gm)].at(-1)![1]!;

const nextTransaction = async (): Promise<bigint> => {
  const { rows } = await sql<{ next: string }>`select pg_snapshot_xmax(pg_current_snapshot())::text as next`.execute(
    machine.db,
  );
  return BigInt(rows[0]!.next);
};

const makeProject = (name: string) => actor.ask('POST', `/organization/${actor.organizationId}/project`, 201, { name });

test('a stream that was ahead of the standby which takes over is told that events are missing, not silently led past new ones', async () => {
  const begun = lastCursor(await read(undefined, 'id: '));
  await postgres.cutStandbyOff();
  await isServing();
  // More than the service itself needs while it goes on.
  for (let number = 1; number <= 30; number++) await makeProject(`lost ${number}`);
  const cursor = lastCursor(await read(begun, 'lost 30'));
  await postgres.failOver();
  await isServing();
  // The first ones have numbers that the cursor has passed already, and the last one does not show it.
  const passed = BigInt(cursor.split('.')[1]!);
  expect(await nextTransaction()).toBeLessThan(passed);
  while ((await nextTransaction()) <= passed + 1n) await makeProject(`new ${++made}`);
  const resumed = await read(cursor, 'event: reset');
  expect(resumed).toContain('event: reset');
  await makeProject('newest');
  expect(await read(lastCursor(resumed), 'newest')).toContain('"newest"');
});

test('a deployment with the number of a lost one is carried out, and replaces what the lost one left running', async () => {
  const environment = await actor.environment('shop');
  const application = await actor.application(environment, 'hello');
  const deploy = () => actor.ask('POST', `/application/${application}/deploy?wait=60`, 200);
  expect((await deploy()).state).toBe('DEPLOYED');
  await postgres.cutStandbyOff();
  await isServing();
  const lost = await deploy();
  expect(lost.state).toBe('DEPLOYED');
  const number = await numberOf(lost.deployment_request_id);
  await postgres.failOver();
  await isServing();
  const again = await deploy();
  expect(again.state).toBe('DEPLOYED');
  expect(await numberOf(again.deployment_request_id)).toBe(number);
  const { epoch } = await machine.db.selectFrom('installation').select('epoch').executeTakeFirstOrThrow();
  expect(epoch).toBe(machine.installation.epoch + 1);
  await machine.settled();
  expect(await findFaults({ ...machine, installation: { ...machine.installation, epoch } })).toEqual([]);
});
