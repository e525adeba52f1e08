import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { startGitServer } from '#runtimes/tools/git/testing.ts';
import type { HttpActor } from '#test/crash/harness/actor.ts';
import { clearJournal, readJournal, setFaults } from '#test/crash/harness/faults.ts';
import { useMachine } from '#test/crash/harness/machine.ts';
import type { ServiceProcess } from '#test/crash/harness/process.ts';
import { until } from '#test/crash/harness/until.ts';
import { findFaults } from '#test/crash/harness/world.ts';

const machine = useMachine();
let actor: HttpActor;
let first: ServiceProcess;
let made = 0;

beforeAll(async () => {
  await machine.start('api', { role: 'api' });
  actor = await machine.organization('zombies');
});
beforeEach(async () => {
  setFaults(machine.dataDir, {});
  clearJournal(machine.dataDir);
  first = await machine.start('first', { role: 'worker' });
});
afterEach(async () => {
  for (const process of machine.processes) if (process.role === 'worker' && process.running) await process.kill();
});

const place = async (more: Record<string, unknown> = {}) => {
  const environment = await actor.environment(`p ${++made}`);
  return { environment, application: await actor.application(environment, 'hello', more) };
};

const stateOf = async (application: string): Promise<string> =>
  (await actor.ask('GET', `/application/${application}/status`, 200)).state;

/** Returns the applies that were let through, with their workers. */
const applied = () =>
  readJournal(machine.dataDir)
    .filter(({ verb }) => verb === 'submit')
    .map(({ pid }) => pid);

test('a worker that is frozen in the middle of a step for 20 s, while another goes on, does nothing more when it wakes', async () => {
  const { application } = await place();
  setFaults(machine.dataDir, { delayMs: { submit: 2_000 } });
  await actor.ask('POST', `/application/${application}/deploy`, 200);
  await until('the first is in the step', async () => (await stateOf(application)) === 'DEPLOYING');
  first.freeze();
  const frozen = performance.now();
  const second = await machine.start('second', { role: 'worker' });
  await until('the second has done it', async () => (await stateOf(application)) === 'DEPLOYED', 60_000);
  await until('20 s have passed', () => performance.now() - frozen > 20_000);
  first.wake();
  // The first worker continues: it alone can take the next deployment.
  await second.kill();
  const next = await place();
  setFaults(machine.dataDir, {});
  expect((await actor.ask('POST', `/application/${next.application}/deploy?wait=30`, 200)).state).toBe('DEPLOYED');
  expect(applied()).toEqual([second.pid, first.pid]);
  await machine.settled();
  expect(await findFaults(machine)).toEqual([]);
});

test('a worker that is frozen and wakes before anybody took over goes on where it was', async () => {
  const { application } = await place();
  setFaults(machine.dataDir, { delayMs: { submit: 5_000 } });
  await actor.ask('POST', `/application/${application}/deploy`, 200);
  await until('it is in the step', async () => (await stateOf(application)) === 'DEPLOYING');
  first.freeze();
  const frozen = performance.now();
  await until('3 s have passed', () => performance.now() - frozen > 3_000);
  first.wake();
  await machine.settled();
  expect(await stateOf(application)).toBe('DEPLOYED');
  expect(applied()).toEqual([first.pid]);
  expect(await findFaults(machine)).toEqual([]);
});

/** Returns the git processes that connect to the server, or false if there are none. */
function gitsOf(url: string): number[] | false {
  const found = processesWith(url);
  return found.length > 0 && found;
}

const processesWith = (text: string): number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      try {
        return pid > 0 && pid !== process.pid && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text);
      } catch {
        return false; // It has ended meanwhile.
      }
    });

test('what a worker that was killed or frozen had started is ended before another one goes on in its place', async () => {
  const options = { root: machine.repositories.folder, hangs: undefined as RegExp | undefined };
  await using server = await startGitServer(options);
  machine.source.commit({ 'Other.Dockerfile': 'FROM scratch\n' });
  const git_repository = { url: `${server.url}/hello`, branch: 'main' };
  const { application, environment } = await place({ git_repository });
  expect((await actor.ask('POST', `/application/${application}/deploy?wait=30`, 200)).state).toBe('DEPLOYED');
  // The commit is known, so that the first transfer is that of the checkout.
  const other = { name: 'hello', git_repository, dockerfile_path: 'Other.Dockerfile' };
  await actor.ask('PUT', `/application/${application}`, 200, other);
  options.hangs = /git-upload-pack$/;
  server.requests.length = 0;
  await actor.ask('POST', `/application/${application}/redeploy`, 200);
  const before = await until('git waits for the server', () => {
    const asked = server.requests.some((url) => options.hangs!.test(url));
    return asked && gitsOf(server.url);
  });
  await first.kill();
  await machine.start('second', { role: 'worker' });
  await until('the second asks as well, and what the first had started is gone', () => {
    const now = gitsOf(server.url);
    return now && !before.some((pid) => now.includes(pid));
  });
  await actor.ask('POST', `/environment/${environment}/cancelDeployment`, 200);
  await machine.settled(5_000);
  await until('a cancelled git is gone', () => !gitsOf(server.url), 5_000);
  expect(await findFaults(machine)).toEqual([]);
});
