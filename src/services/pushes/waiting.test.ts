import { beforeEach, describe, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { bodyOfPush, commit, headersOf, usePushes, ZERO } from '#services/pushes/pushes.fixture.ts';
import { RepositoryError } from '#services/sources/repository.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
const { git, environmentOf, applicationIn, webhookOf, call, push, worker, applied, requested } = usePushes(app);
const [a, b, c] = [commit('a'), commit('b'), commit('c')];
const DOWN = new RepositoryError('failed', 'It cannot be read without credentials.');

beforeEach(() => {
  git.failure = undefined;
  git.changesFailure = undefined;
  git.changes = { author: 'Grace', message: 'a change', paths: null };
  git.heads.clear();
  git.asked.length = 0;
});

async function place(body: object = {}) {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  return { admin, environment, web: await applicationIn(admin, environment, body), hook: await webhookOf(admin) };
}
const rowsOf = ({ organizationId }: Actor) =>
  app.db.selectFrom('git_push').selectAll().where('organization_id', '=', organizationId).orderBy('number').execute();
const headOf = async ({ organizationId }: Actor) =>
  (await app.db.selectFrom('git_branch').select('head').where('organization_id', '=', organizationId).executeTakeFirst())?.head; // prettier-ignore
const restrict = (admin: Actor, web: string) =>
  admin.post(`/application/${web}/deploymentRestriction`, { mode: 'MATCH', type: 'PATH', value: 'web' });

test('however many pushes of a repository wait, one question confirms all of them', async () => {
  const { admin, environment, web, hook } = await place();
  const commits = Array.from({ length: 130 }, (_, n) => commit(`n${n}`));
  for (const [n, after] of commits.entries()) await push(hook, { before: commits[n - 1] ?? ZERO, after });
  worker();
  const rows = await applied(admin);
  expect(new Set(rows.map(({ error, asks }) => `${error} ${asks}`))).toEqual(new Set(['null 0']));
  expect(rows.every(({ body, pushes }) => body === null && pushes === null)).toBe(true);
  expect(await requested(environment)).toEqual([{ [web]: commits.at(-1) }]);
  expect(git.asked.filter((one) => one.startsWith('heads'))).toHaveLength(1);
});

test('the first push to a branch is deployed, also where its repository names a later one whose call is still on its way', async () => {
  const { admin, environment, web, hook } = await place();
  await push(hook, { before: ZERO, after: a });
  git.heads.set('git.invalid/acme/shop main', b);
  worker();
  await expect.poll(() => requested(environment)).toEqual([{ [web]: b }]);
  await push(hook, { before: a, after: b });
  expect((await applied(admin, { hurry: true })).map(({ error }) => error)).toEqual([null, null]);
});

test('a push whose commit is before one that was applied long ago is confirmed', async () => {
  const { admin, hook } = await place();
  await push(hook, { before: a, after: b });
  await push(hook, { before: b, after: c });
  worker();
  await applied(admin);
  const d = commit('d');
  await push(hook, { before: c, after: d });
  await applied(admin);
  await push(hook, { before: commit('0'), after: a, isOld: true });
  expect((await applied(admin)).at(-1)).toMatchObject({ after_commit: a, error: null, asks: 0 });
});

describe('a push that the repository does not confirm', () => {
  test('is asked about five times when it is due, and not for each push that comes meanwhile', async () => {
    const { admin, hook } = await place();
    await push(hook, { before: ZERO, after: a });
    const loop = worker();
    await applied(admin);
    await push(hook, { before: a, after: commit('late'), isOld: true });
    await expect.poll(async () => (loop.nudge(), (await rowsOf(admin)).at(-1)!.asks)).toBe(1);
    await sql`update git_push set due_at = now() + interval '1 hour' where status = 'WAITING'`.execute(app.db);
    let before = a;
    for (let n = 0; n < 7; n++) {
      const after = commit(`more ${n}`);
      await push(hook, { before, after });
      await expect.poll(() => (loop.nudge(), headOf(admin))).toBe(after);
      before = after;
    }
    expect((await rowsOf(admin))[1]).toMatchObject({ status: 'WAITING', asks: 1, error: null });
    await applied(admin, { hurry: true });
    expect((await rowsOf(admin))[1]).toMatchObject({ asks: 5, error: expect.stringContaining('was not applied') });
  });

  test('is asked about as often after the repository did not answer', async () => {
    const { admin, hook } = await place();
    await push(hook, { before: ZERO, after: a });
    worker();
    await applied(admin);
    git.failure = DOWN;
    await push(hook, { before: a, after: commit('late'), isOld: true });
    await expect.poll(async () => (await rowsOf(admin)).at(-1)!.failures).toBe(1);
    await sql`update git_push set failures = 8, due_at = now() where status = 'WAITING'`.execute(app.db);
    git.failure = undefined;
    await expect.poll(async () => (await rowsOf(admin)).at(-1)!.asks).toBe(1);
    expect((await rowsOf(admin)).at(-1)).toMatchObject({ status: 'WAITING', error: null, failures: 0 });
    await applied(admin, { hurry: true });
  });
});

test('a new push has a repository asked again that did not answer, every ten seconds at most', async () => {
  const { admin, environment, web, hook } = await place();
  git.failure = DOWN;
  await push(hook, { before: ZERO, after: a });
  worker();
  await expect.poll(async () => (await rowsOf(admin))[0]!.error).toBe(DOWN.message);
  const put = (asked: string) => sql`update git_push set due_at = now() + interval '10 minutes', asked_at = now() - ${asked}::interval where organization_id = ${admin.organizationId}`.execute(app.db); // prettier-ignore
  const seconds = async () => (await sql<{ s: number }>`select extract(epoch from due_at - now())::float8 as s from git_push where organization_id = ${admin.organizationId} order by number limit 1`.execute(app.db)).rows[0]!.s; // prettier-ignore
  await put('4 seconds');
  const asked = git.asked.length;
  await push(hook, { before: a, after: b });
  expect(await seconds()).toBeLessThan(7);
  expect(await seconds()).toBeGreaterThan(1);
  expect(git.asked).toHaveLength(asked);
  await put('1 minute');
  git.failure = undefined;
  await push(hook, { before: b, after: c });
  expect((await applied(admin)).map(({ error }) => error)).toEqual([null, null, null]);
  expect(await requested(environment)).toEqual([{ [web]: c }]);
});

describe('a branch that is deleted and made again', () => {
  test.each([
    ['with another commit', b],
    ['with the same commit', a],
  ])('%s is one whose calls are all confirmed', async (_, again) => {
    const { admin, environment, web, hook } = await place();
    worker();
    await push(hook, { before: ZERO, after: a });
    await applied(admin);
    await push(hook, { before: a, after: ZERO, isOld: true });
    await push(hook, { before: ZERO, after: again });
    const rows = await applied(admin, { hurry: true });
    expect(rows.map(({ error }) => error)).toEqual([null, null, null]);
    expect(await headOf(admin)).toBe(again);
    expect((await requested(environment)).at(-1)).toEqual({ [web]: again });
  });

  test('after a last push is one whose calls are all confirmed', async () => {
    const { admin, hook } = await place();
    await push(hook, { before: ZERO, after: a });
    const first = worker();
    await applied(admin);
    // A look between the two would ask for a head that is gone by then.
    await first.stop();
    await push(hook, { before: a, after: b });
    await push(hook, { before: b, after: ZERO });
    worker();
    expect((await applied(admin)).map(({ error, asks }) => [error, asks])).toEqual([[null, 0], [null, 0], [null, 0]]); // prettier-ignore
    expect(await headOf(admin)).toBeNull();
  });
});

test('changes that cannot be read are unknown for their own branch only', async () => {
  const { admin, environment, web, hook } = await place();
  const git_repository = { url: 'https://git.invalid/acme/shop.git', branch: 'next' };
  const next = await applicationIn(admin, environment, { git_repository });
  for (const id of [web, next]) ok(await restrict(admin, id), 201);
  for (const branch of ['main', 'next']) await push(hook, { branch, before: ZERO, after: a, files: ['docs/x'] });
  const first = worker();
  await applied(admin);
  // A claim before all is set would count an attempt of its own.
  await first.stop();
  const before = await requested(environment);
  // Forced pushes: git is asked for both, and answers for one.
  git.changes = { author: 'Grace', message: 'x', paths: ['docs/x'] };
  git.changesFailure = { of: c, error: DOWN };
  await push(hook, { branch: 'main', before: commit('x'), after: b, forced: true });
  await push(hook, { branch: 'next', before: commit('y'), after: c, forced: true });
  await sql`update git_push set attempts = 5 where status = 'WAITING'`.execute(app.db);
  worker();
  await applied(admin);
  const made = (await requested(environment)).slice(before.length);
  expect(Object.assign({}, ...(made.length > 0 ? made : await requested(environment)))).toMatchObject({ [next]: c });
  const outcomes = (await rowsOf(admin)).at(-1)!.outcome as { serviceId: string; result: string }[];
  expect(outcomes.find(({ serviceId }) => serviceId === web)!.result).toBe('NOT_AFFECTED');
});

test('files that a call of GitLab names, which nothing signs, are asked of git', async () => {
  const { admin, environment, web, hook } = await place();
  ok(await restrict(admin, web), 201);
  await push(hook, { before: ZERO, after: a, files: ['docs/x'] });
  worker();
  await applied(admin);
  const before = await requested(environment);
  git.changes = { author: 'Grace', message: 'x', paths: ['web/x'] };
  const body = bodyOfPush({ before: a, after: b, files: ['docs/x'] });
  ok(await call(hook, body, headersOf('GITLAB', body)), 202);
  await applied(admin);
  expect(git.asked).toContain(`changes ${a} ${b}`);
  expect((await requested(environment)).at(-1)).toEqual({ [web]: b });
  expect(before.flatMap((one) => Object.values(one))).not.toContain(b);
});
