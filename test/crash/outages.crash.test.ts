import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGitServer } from '#runtimes/tools/git/testing.ts';
import type { HttpActor } from '#test/crash/harness/actor.ts';
import { setFaults } from '#test/crash/harness/faults.ts';
import { makeMachine, type Machine } from '#test/crash/harness/machine.ts';
import { startOwnPostgres, startRelay, type OwnPostgres } from '#test/crash/harness/postgres.ts';
import { until } from '#test/crash/harness/until.ts';
import { findFaults } from '#test/crash/harness/world.ts';

let postgres: OwnPostgres;
let machine: Machine;
let actor: HttpActor;
let made = 0;

const begin = async (folder?: string, parameters?: Record<string, string>): Promise<void> => {
  postgres = await startOwnPostgres(folder, parameters);
  // The test itself connects past the relay; the processes connect over it.
  machine = await makeMachine({ database: postgres.direct, processes: postgres.relayed });
  await machine.start('api', { role: 'api' });
  await machine.start('worker', { role: 'worker' });
  actor = await machine.organization('outages');
};
const end = async (): Promise<void> => {
  await machine?.close();
  await postgres?.close();
};

const place = async (more: Record<string, unknown> = {}) => {
  const environment = await actor.environment(`p ${++made}`);
  return { environment, application: await actor.application(environment, 'hello', more) };
};

const stateOf = async (application: string): Promise<string> =>
  (await actor.ask('GET', `/application/${application}/status`, 200)).state;

/** Waits until the API answers with success again. */
const untilBack = () =>
  until(
    'the API answers',
    async () => (await actor.call('GET', '/account').catch(() => undefined))?.status === 200,
    30_000,
    100,
  );

/** Starts a deployment and waits until it is in its last step, which takes `applyMs` milliseconds. */
async function deploying(applyMs: number) {
  const made = await place();
  setFaults(machine.dataDir, { delayMs: { submit: applyMs } });
  const answer = await actor.ask('POST', `/application/${made.application}/deploy`, 200);
  await until('it is being applied', async () => (await stateOf(made.application)) === 'DEPLOYING');
  return {
    ...made,
    acknowledged: { deployments: [{ id: answer.deployment_request_id, environmentId: made.environment }], deleted: [] },
  };
}

describe('the database', () => {
  beforeAll(() => begin());
  afterAll(end);
  beforeEach(() => setFaults(machine.dataDir, {}));

  test.each(['immediate', 'fast'] as const)(
    'ends (%s) and comes back in the middle of a deployment, which goes on to its end',
    async (how) => {
      const { application, acknowledged } = await deploying(1_500);
      await postgres.end(how);
      const answer = await actor.call('GET', '/account');
      expect([answer.status, answer.body.message]).toEqual([
        503,
        expect.stringMatching(/^The database cannot be reached or lacks space/),
      ]);
      await postgres.start();
      await untilBack();
      await machine.settled(40_000);
      expect(await stateOf(application)).toBe('DEPLOYED');
      expect(await findFaults(machine, acknowledged)).toEqual([]);
    },
  );

  test.each([
    ['cut', 10],
    ['silent', 30],
  ] as const)(
    'cannot be reached (%s) for %i s: the deployment goes on when it can, and nothing waits for ever',
    async (mode, seconds) => {
      const { application, acknowledged } = await deploying(1_500);
      await postgres.relay.set(mode);
      const cut = performance.now();
      const answer = actor.call('GET', '/account');
      await until('the time has passed', () => performance.now() - cut > seconds * 1000, 40_000, 200);
      await postgres.relay.set('open');
      expect([200, 503]).toContain((await answer).status);
      await untilBack();
      await machine.settled(60_000);
      expect(await stateOf(application)).toBe('DEPLOYED');
      expect(await findFaults(machine, acknowledged)).toEqual([]);
    },
  );
});

describe('a git server', () => {
  beforeAll(() => begin());
  afterAll(end);
  beforeEach(() => setFaults(machine.dataDir, {}));

  test('that breaks off in the middle of a transfer makes a clear error, and the next deployment succeeds', async () => {
    const repository = machine.repositories.make('large');
    repository.commit({
      Dockerfile: 'FROM scratch\n',
      // Incompressible data, so that the transfer is long enough to be cut.
      large: Array.from({ length: 200_000 }, () => Math.random().toString(36)).join('\n'),
    });
    await using server = await startGitServer({ root: machine.repositories.folder });
    const relay = await startRelay(Number(new URL(server.url).port));
    try {
      const { application } = await place({
        git_repository: { url: `http://127.0.0.1:${relay.port}/large`, branch: 'main' },
        ports: [],
      });
      relay.cutAfter(300_000);
      const failed = await actor.ask('POST', `/application/${application}/deploy?wait=60`, 200);
      expect(failed.state).toMatch(/^(BUILD|DEPLOYMENT)_ERROR$/);
      const row = await machine.db
        .selectFrom('deployment_service')
        .select('error')
        .where('deployment_id', '=', failed.deployment_request_id)
        .executeTakeFirstOrThrow();
      expect(row.error).toMatch(/\S/);
      expect(row.error).toContain(`127.0.0.1:${relay.port}`);
      relay.cutAfter(Infinity);
      expect((await actor.ask('POST', `/application/${application}/deploy?wait=60`, 200)).state).toBe('DEPLOYED');
      expect(await findFaults(machine)).toEqual([]);
    } finally {
      await relay.close();
    }
  });

  test('that hangs in the middle of a transfer ends in an error that names it, long before the build would have to', async () => {
    await using server = await startGitServer({ root: machine.repositories.folder, hangs: /git-upload-pack$/ });
    const { application } = await place({ git_repository: { url: `${server.url}/hello`, branch: 'main' } });
    await actor.ask('POST', `/application/${application}/deploy`, 200);
    await machine.settled(100_000);
    expect(await stateOf(application)).toMatch(/^(BUILD|DEPLOYMENT)_ERROR$/);
    expect(await findFaults(machine)).toEqual([]);
  });
});

/** Writes a file until the disk has no room left. */
function fill(folder: string, file: string): void {
  const { bavail, bsize } = statfsSync(folder);
  const descriptor = openSync(file, 'w');
  try {
    for (let block = 0; block <= bavail; block++) writeSync(descriptor, Buffer.alloc(bsize, 1));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(descriptor);
  }
}

describe.runIf(process.getuid?.() === 0)('the disk of the database', () => {
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'qd-small-disk-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=160m,mode=755', 'tmpfs', folder]);
    await begin(folder, { max_wal_size: '32MB', min_wal_size: '32MB', wal_level: 'minimal', max_wal_senders: '0' });
  });
  afterAll(async () => {
    await end();
    execFileSync('umount', [folder]);
    rmSync(folder, { recursive: true });
  });

  test('is full in the middle of deployments: they go on when there is room, and nothing that was answered is gone', async () => {
    const { application, environment, acknowledged } = await deploying(1_000);
    const filler = path.join(folder, 'filler');
    fill(folder, filler);
    // Requests may be refused, but a successful answer must hold.
    let refused = 0;
    await until(
      'writes are refused',
      async () => {
        const answer = await actor.call('POST', `/application/${application}/deploy`).catch(() => undefined);
        if (answer?.status === 200)
          acknowledged.deployments.push({ id: answer.body.deployment_request_id, environmentId: environment });
        else refused++;
        return refused > 3;
      },
      60_000,
    );
    rmSync(filler);
    // A database server without room for its WAL ends itself; its operator starts it again.
    await until(
      'the database answers',
      async () => {
        if (!postgres.running) await postgres.start();
        return (await actor.call('GET', '/account').catch(() => undefined))?.status === 200;
      },
      60_000,
      500,
    );
    await machine.settled();
    expect(await stateOf(application)).toBe('DEPLOYED');
    expect(await findFaults(machine, acknowledged)).toEqual([]);
  });
});
