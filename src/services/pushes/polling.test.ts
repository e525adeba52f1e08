import { afterEach, beforeEach, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { KINDS } from '#services/mount.ts';
import { wantPolls } from '#services/pushes/branch-queries.ts';
import { createPollLoop, reconcileFollowed } from '#services/pushes/polling.ts';
import { commit, usePushes } from '#services/pushes/pushes.fixture.ts';
import { RepositoryError } from '#services/sources/repository.ts';
import { useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
const { git, repositories, environmentOf, applicationIn, webhookOf, push, worker, applied, requested, deployments } =
  usePushes(app);
const [a, b] = [commit('a'), commit('b')];

const loops: ReturnType<typeof createPollLoop>[] = [];
beforeEach(async () => {
  await sql`truncate git_branch, git_push, service cascade`.execute(app.db);
  git.asked.length = 0;
  git.failure = undefined;
  git.changes = { author: 'Grace', message: 'a change', paths: null };
});
afterEach(async () => {
  await Promise.all(loops.splice(0).map((loop) => loop.stop()));
});

/** Looks once at every branch that is due, by a process of its own. */
async function look() {
  const loop = createPollLoop({ platform: app.platform, kinds: KINDS, repositories }, newId());
  loops.push(loop);
  await loop.look();
  await expect
    .poll(async () => (await branches()).every(({ claim_token }) => claim_token === null), { interval: 5 })
    .toBe(true);
}
const branches = () => app.db.selectFrom('git_branch').selectAll().execute();
const makeDue = () => sql`update git_branch set next_at = now()`.execute(app.db);
const follow = () => reconcileFollowed(app.platform, KINDS);
const secondsUntilNext = async (): Promise<number> =>
  (await sql<{ s: number }>`select extract(epoch from next_at - now())::float8 as s from git_branch`.execute(app.db))
    .rows[0]!.s;

async function place(count = 2): Promise<{ admin: Actor; environment: string; ids: string[] }> {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  const ids = [];
  for (let n = 0; n < count; n++) ids.push(await applicationIn(admin, environment));
  await follow();
  return { admin, environment, ids };
}

test('a branch is asked for once, however many services and processes there are, and a commit deploys as a webhook would', async () => {
  const { admin, environment, ids } = await place();
  worker();
  git.head = a;
  await Promise.all([look(), look(), look()]);
  expect(git.asked.filter((one) => one.startsWith('head'))).toEqual(['head main']);
  await applied(admin);
  // None was deployed before: the first look only learns where the branch stands.
  expect(await requested(environment)).toEqual([]);
  git.head = b;
  await makeDue();
  await Promise.all([look(), look()]);
  await applied(admin);
  expect(await requested(environment)).toEqual([Object.fromEntries(ids.map((id) => [id, b]))]);
  expect(await deployments(environment)).toMatchObject([{ origin: 'GIT', requested_by_name: 'Grace' }]);
  await makeDue();
  await look();
  expect(await applied(admin)).toHaveLength(2);
});

test('the first look deploys what was deployed from another commit', async () => {
  const { admin, environment, ids } = await place();
  await app.db.updateTable('service').set({ newest_commit: a }).where('id', '=', ids[0]!).execute();
  worker();
  git.head = b;
  await look();
  await applied(admin);
  expect(await requested(environment)).toEqual([{ [ids[0]!]: b }]);
});

test('[skip ci] and restrictions hold for what a poll finds', async () => {
  const { admin, environment, ids } = await place();
  await admin.post(`/application/${ids[0]}/deploymentRestriction`, { mode: 'MATCH', type: 'PATH', value: 'api' });
  worker();
  for (const [head, message] of [
    [a, 'x'],
    [b, 'x [skip ci]'],
    [commit('c'), 'x'],
  ] as const) {
    git.head = head;
    git.changes = { author: 'Grace', message, paths: ['web/x'] };
    await makeDue();
    await look();
    await applied(admin);
  }
  expect(await requested(environment)).toEqual([{ [ids[1]!]: commit('c') }]);
});

test('a branch whose webhook calls is left alone for an hour, and one that fails for ever longer', async () => {
  const { admin } = await place();
  worker();
  git.head = a;
  await look();
  expect(await secondsUntilNext()).toBeLessThan(67);
  await push(await webhookOf(admin), { before: a, after: b });
  await applied(admin);
  expect(await secondsUntilNext()).toBeGreaterThan(3_500);
  git.failure = new RepositoryError('unreachable', 'git.invalid did not answer.');
  const pauses = [];
  for (let n = 0; n < 3; n++) {
    await makeDue();
    await look();
    pauses.push(await secondsUntilNext());
  }
  expect(pauses[1]!).toBeGreaterThan(pauses[0]! * 1.5);
  expect(pauses[2]!).toBeGreaterThan(pauses[1]! * 1.5);
  expect(await branches()).toMatchObject([{ failures: 3, error: 'git.invalid did not answer.' }]);
});

test('only services with auto_deploy are asked for, and none if the interval is 0', async () => {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  await applicationIn(admin, environment, { auto_deploy: false });
  await follow();
  expect(await branches()).toEqual([]);
  await applicationIn(admin, environment);
  await follow();
  const settings = { ...app.platform.settings, gitPollSeconds: 0 };
  const silent = createPollLoop({ platform: { ...app.platform, settings }, kinds: KINDS, repositories }, newId());
  loops.push(silent);
  await silent.look();
  expect(git.asked).toEqual([]);
});

test('what a poll found is found again when its push had to be given up', async () => {
  const { admin, environment, ids } = await place(1);
  worker();
  git.head = a;
  await look();
  await applied(admin);
  // The repository fails between the poll and the push, which another one stands before.
  git.head = b;
  await makeDue();
  await sql`update git_branch set head = ${commit('elsewhere')}`.execute(app.db);
  git.failure = undefined;
  const heads = git.gate;
  let fail: (error: Error) => void = () => undefined;
  git.gate = new Promise((_, reject) => (fail = reject));
  git.gate.catch(() => undefined);
  await look();
  await sql`update git_push set created_at = now() - interval '25 hours' where status <> 'ENDED'`.execute(app.db);
  fail(new RepositoryError('unreachable', 'git.invalid did not answer.'));
  const rows = await applied(admin, { hurry: true });
  expect(rows.at(-1)).toMatchObject({ error: 'git.invalid did not answer.' });
  git.gate = heads;
  await look();
  await applied(admin);
  expect(await requested(environment)).toEqual([{ [ids[0]!]: b }]);
});

test('a call that is lost during a look has the branch looked at once more, and the look ends', async () => {
  const { admin, environment, ids } = await place(1);
  worker();
  git.head = a;
  await look();
  await applied(admin);
  await makeDue();
  let asked = 0;
  const loop = createPollLoop(
    {
      platform: app.platform,
      kinds: KINDS,
      repositories: {
        ...repositories,
        head: async () => {
          // The first look asks before the push, whose call is lost while it runs.
          if (++asked > 1) return b;
          await wantPolls(app.db, { organization_id: admin.organizationId, repository: 'git.invalid/acme/shop' });
          return a;
        },
      },
    },
    newId(),
  );
  loops.push(loop);
  git.head = b;
  await loop.look();
  await expect.poll(async () => (loop.nudge(), (await branches()).map(({ polled, wanted }) => [polled, wanted]))).toEqual([[b, 0]]); // prettier-ignore
  expect(asked).toBe(2);
  await applied(admin);
  expect(await requested(environment)).toEqual([{ [ids[0]!]: b }]);
});

test('a repository that does not answer is not asked for each lost call', async () => {
  const { admin } = await place(1);
  git.failure = new RepositoryError('unreachable', 'git.invalid did not answer.');
  await look();
  for (let n = 0; n < 3; n++)
    await wantPolls(app.db, { organization_id: admin.organizationId, repository: 'git.invalid/acme/shop' });
  expect(await branches()).toMatchObject([{ failures: 1, wanted: 3 }]);
  expect(await secondsUntilNext()).toBeGreaterThan(5);
  expect(await secondsUntilNext()).toBeLessThan(11);
});
