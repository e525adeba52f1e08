import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { createSources } from '#app/git.ts';
import { startGitServer, type GitServer, type GitServerOptions } from '#runtimes/tools/git/testing.ts';
import { KINDS } from '#services/mount.ts';
import { createPollLoop, reconcileFollowed } from '#services/pushes/polling.ts';
import { bodyOfPush, commit, headersOf, usePushes, ZERO } from '#services/pushes/pushes.fixture.ts';
import { createRepositoryReader } from '#services/sources/repository-reader.ts';
import { useApp, type Actor } from '#test/harness/app.ts';
import { makeRandom } from '#test/harness/random.ts';
import { makeRepositoryRoot, type TestRepository } from '#test/harness/repository.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
const reader = () => createRepositoryReader(createSources(app.platform));
// Questions are asked of real processes, which take a while beside other tests.
const pushes = usePushes(app, { reader, askMs: () => (options.hangs ? 1_500 : undefined) });
const { environmentOf, applicationIn, webhookOf, replay, worker, applied, requested } = pushes;

const root = makeRepositoryRoot();
const options: GitServerOptions = { root: root.folder };
let server: GitServer;
beforeAll(async () => void (server = await startGitServer(options)));
beforeEach(() => {
  options.hangs = false;
  delete options.credentials;
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  root.remove();
});

interface Place {
  admin: Actor;
  environment: string;
  web: string;
  hook: string;
  repository: TestRepository;
}

/** Makes a repository behind real git over HTTP, a service that follows it, and its webhook. */
async function place(branch = 'main'): Promise<Place> {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  const name = `acme/${newId()}`;
  const repository = root.make(name);
  const web = await applicationIn(admin, environment, { git_repository: { url: `${server.url}/${name}`, branch } });
  const hook = await webhookOf(admin, `${new URL(server.url).host}/${name}`);
  worker();
  return { admin, environment, web, hook, repository };
}

const send = (hook: string, body: string, secret?: string) =>
  replay(hook, body, headersOf('GITHUB', body, secret === undefined ? {} : { secret }));
/** Forgets calls, as the program does a month after they were applied. */
const forget = () => sql`delete from git_push where status = 'ENDED'`.execute(app.db);
const headOf = async ({ organizationId }: Actor, branch = 'main') =>
  (
    await app.db
      .selectFrom('git_branch')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('branch', '=', branch)
      .executeTakeFirst()
  )?.head;
const branchesOf = ({ organizationId }: Actor) =>
  app.db.selectFrom('git_branch').selectAll().where('organization_id', '=', organizationId).execute();
/** Lets what waits end, so that the next push makes a request of its own. */
const run = (environment: string) =>
  sql`update deployment set status = 'ENDED', outcome = 'SUCCESS', ended_at = now() where environment_id = ${environment}`.execute(
    app.db,
  );
const commitsOf = async (environment: string) => (await requested(environment)).flatMap((one) => Object.values(one));

describe('a branch stays where its repository says', () => {
  test('when a signed call comes again after it was forgotten', async () => {
    const { admin, environment, hook, repository } = await place();
    const [one, two] = [repository.commit({ a: '1' }), repository.commit({ a: '2' })];
    const three = repository.commit({ a: '3' });
    const old = bodyOfPush({ before: one, after: two });
    for (const body of [old, bodyOfPush({ before: two, after: three })]) {
      await send(hook, body);
      await applied(admin, { hurry: true });
    }
    expect(await headOf(admin)).toBe(three);
    const before = await commitsOf(environment);
    await run(environment);
    await forget();
    expect((await send(hook, old)).body).toEqual({ is_new: true });
    const [row] = await applied(admin, { hurry: true });
    expect(row).toMatchObject({ outcome: null, asks: 5, body: null });
    expect(row!.error).toBe(`The push of ${two} to main was not applied: the repository names ${three} as its head.`);
    expect(await headOf(admin)).toBe(three);
    expect(await commitsOf(environment)).toEqual(before);
  });

  test('when it went back to a commit from which an old call goes on', async () => {
    const { admin, environment, hook, repository } = await place();
    const one = repository.commit({ a: '1' });
    const two = repository.commit({ a: '2' });
    const old = bodyOfPush({ before: one, after: two });
    await send(hook, old);
    await applied(admin);
    repository.git('reset', '--hard', '--quiet', one);
    await send(hook, bodyOfPush({ before: two, after: one, forced: true }));
    await applied(admin);
    expect(await headOf(admin)).toBe(one);
    await run(environment);
    await forget();
    await send(hook, old);
    await applied(admin, { hurry: true });
    expect(await headOf(admin)).toBe(one);
    expect((await commitsOf(environment)).at(-1)).toBe(one);
  });

  test('when a call says that it was deleted, and when it says that it was made', async () => {
    const { admin, environment, web, hook, repository } = await place();
    const one = repository.commit({ a: '1' });
    await send(hook, bodyOfPush({ after: one }));
    await applied(admin);
    await send(hook, bodyOfPush({ before: one, after: ZERO }));
    await applied(admin, { hurry: true });
    expect(await headOf(admin)).toBe(one);
    repository.git('checkout', '--quiet', '-b', 'other');
    repository.git('branch', '-D', 'main');
    await send(hook, bodyOfPush({ before: commit('elsewhere'), after: one }));
    await applied(admin, { hurry: true });
    expect(await headOf(admin)).toBe(one);
    await send(hook, bodyOfPush({ before: one, after: ZERO }));
    await applied(admin, { hurry: true });
    expect(await headOf(admin)).toBeNull();
    expect(await requested(environment)).toEqual([{ [web]: one }]);
  });

  test('when nobody has signed the call', async () => {
    const { admin, environment, hook, repository } = await place();
    const one = repository.commit({ a: '1' });
    expect((await send(hook, bodyOfPush({ after: one }), 'another')).status).toBe(404);
    expect(await applied(admin)).toEqual([]);
    expect(await requested(environment)).toEqual([]);
  });

  test('for services without auto_deploy, which old calls do not make out of date', async () => {
    const { admin, environment, hook, repository } = await place();
    const url = (await app.db.selectFrom('service').select('spec').where('organization_id', '=', admin.organizationId).executeTakeFirstOrThrow()).spec as any; // prettier-ignore
    const git_repository = { url: url.git_repository.url, branch: 'main' };
    const idle = await applicationIn(admin, environment, { auto_deploy: false, git_repository });
    const [one, two] = [repository.commit({ a: '1' }), repository.commit({ a: '2' })];
    await send(hook, bodyOfPush({ before: ZERO, after: one }));
    await applied(admin, { hurry: true });
    const { newest_commit } = await app.db.selectFrom('service').select('newest_commit').where('id', '=', idle).executeTakeFirstOrThrow(); // prettier-ignore
    expect(newest_commit).toBe(two);
  });
});

describe('a push is not lost', () => {
  test('that comes before an earlier one, which then changes nothing', async () => {
    const { admin, environment, web, hook, repository } = await place();
    const [one, two] = [repository.commit({ a: '1' }), repository.commit({ a: '2' })];
    await send(hook, bodyOfPush({ before: one, after: two }));
    await applied(admin);
    await send(hook, bodyOfPush({ before: ZERO, after: one }));
    const rows = await applied(admin);
    expect(rows.map(({ error }) => error)).toEqual([null, null]);
    expect(await requested(environment)).toEqual([{ [web]: two }]);
  });

  test('whose predecessor was lost: services get the files of both', async () => {
    const { admin, environment, web, hook, repository } = await place();
    await admin.post(`/application/${web}/deploymentRestriction`, { mode: 'MATCH', type: 'PATH', value: 'web' });
    const one = repository.commit({ 'web/x': '1' });
    await send(hook, bodyOfPush({ before: commit('0'), after: one, files: ['docs/x'] }));
    await applied(admin);
    expect(await requested(environment)).toEqual([]);
    const two = repository.commit({ 'web/x': '2' });
    const three = repository.commit({ 'docs/x': '3' });
    await send(hook, bodyOfPush({ before: two, after: three, files: ['docs/x'] }));
    await applied(admin);
    expect(await requested(environment)).toEqual([{ [web]: three }]);
  });

  test('to a repository that hangs or fails: it waits, says why, and is applied when the repository answers', async () => {
    const { admin, environment, web, hook, repository } = await place();
    const one = repository.commit({ a: '1' });
    options.hangs = true;
    await send(hook, bodyOfPush({ after: one }));
    const waiting = () => app.db.selectFrom('git_push').selectAll().where('organization_id', '=', admin.organizationId).execute(); // prettier-ignore
    await expect.poll(async () => (await waiting())[0]?.failures).toBe(1);
    expect(await waiting()).toMatchObject([{ status: 'WAITING', attempts: 0, claim_token: null }]);
    expect((await waiting())[0]!.error).toMatch(/did not answer in time/);
    options.hangs = false;
    options.credentials = { username: 'a', password: 'b' };
    await sql`update git_push set due_at = now() where status = 'WAITING'`.execute(app.db);
    await expect.poll(async () => (await waiting())[0]?.failures).toBe(2);
    expect((await waiting())[0]!.error).toMatch(/cannot be read without credentials/);
    const pause = await sql<{ s: number }>`select extract(epoch from due_at - now())::float8 as s from git_push where id = ${(await waiting())[0]!.id}`.execute(app.db); // prettier-ignore
    expect(pause.rows[0]!.s).toBeGreaterThan(2);
    delete options.credentials;
    expect(await applied(admin, { hurry: true })).toMatchObject([{ error: null, after_commit: one }]);
    expect(await requested(environment)).toEqual([{ [web]: one }]);
  });

  test('to a repository that does not answer for a day: polls look for it from then on', async () => {
    const { admin, hook, repository } = await place();
    repository.commit({ a: '1' });
    await reconcileFollowed(app.platform, KINDS);
    await sql`update git_branch set next_at = now() + interval '1 hour'`.execute(app.db);
    options.credentials = { username: 'a', password: 'b' };
    await send(hook, bodyOfPush({ after: commit('x') }));
    await sql`update git_push set created_at = now() - interval '25 hours' where status <> 'ENDED'`.execute(app.db);
    const [row] = await applied(admin, { hurry: true });
    expect(row!.error).toMatch(/cannot be read without credentials/);
    const [branch] = await branchesOf(admin);
    expect(branch).toMatchObject({ wanted: 1 });
    expect(branch!.next_at.getTime()).toBeLessThanOrEqual(Date.now() + 1_000);
  });

  test('whose repository names the new head only seconds later', async () => {
    const { admin, environment, web, hook, repository } = await place();
    const one = repository.commit({ a: '1' });
    await send(hook, bodyOfPush({ after: one }));
    await applied(admin);
    const two = repository.commit({ a: '2' });
    repository.git('update-ref', 'refs/heads/main', one);
    await send(hook, bodyOfPush({ before: one, after: two }));
    await expect.poll(async () => (await app.db.selectFrom('git_push').select('asks').where('organization_id', '=', admin.organizationId).orderBy('number', 'desc').executeTakeFirst())?.asks).toBe(1); // prettier-ignore
    expect(await requested(environment)).toEqual([{ [web]: one }]);
    repository.git('update-ref', 'refs/heads/main', two);
    expect((await applied(admin, { hurry: true })).map(({ error }) => error)).toEqual([null, null]);
    expect(await requested(environment)).toEqual([{ [web]: two }]);
  });

  test('while another repository does not answer', async () => {
    const dead = await place();
    const alive = await place();
    const one = alive.repository.commit({ a: '1' });
    options.hangs = new RegExp(dead.repository.url.split('/').at(-1)!);
    dead.repository.commit({ a: '1' });
    for (let n = 0; n < 12; n++) await send(dead.hook, bodyOfPush({ after: commit(String(n)) }));
    await send(alive.hook, bodyOfPush({ after: one }));
    await applied(alive.admin);
    expect(await requested(alive.environment)).toEqual([{ [alive.web]: one }]);
    // What comes for it later waits with the first: it is not asked for each of them.
    await expect.poll(async () => (await sql<{ n: number }>`select count(*)::int as n from git_push where organization_id = ${dead.admin.organizationId} and failures > 0`.execute(app.db)).rows[0]!.n).toBeGreaterThanOrEqual(11); // prettier-ignore
    options.hangs = false;
    await applied(dead.admin, { hurry: true });
  });
});

describe('services that follow the default branch', () => {
  test('get a push to it whatever the call says, and follow it to another branch', async () => {
    const { admin, environment, web, hook, repository } = await place('HEAD');
    const one = repository.commit({ a: '1' });
    // A body that names `next` as the default branch, and one that names none.
    const lie = JSON.stringify({ ...JSON.parse(bodyOfPush({ after: one })), repository: { default_branch: 'next' } });
    await send(hook, lie);
    await applied(admin, { hurry: true });
    expect(await requested(environment)).toEqual([{ [web]: one }]);
    const two = repository.commit({ a: '2' });
    await send(hook, JSON.stringify({ ...JSON.parse(bodyOfPush({ before: one, after: two })), repository: {} }));
    await applied(admin, { hurry: true });
    expect(await requested(environment)).toEqual([{ [web]: two }]);
    // Another branch is none of theirs until HEAD names it.
    repository.git('checkout', '--quiet', '-b', 'next');
    const three = repository.commit({ a: '3' });
    repository.git('symbolic-ref', 'HEAD', 'refs/heads/main');
    await send(hook, bodyOfPush({ branch: 'next', before: two, after: three }));
    await applied(admin, { hurry: true });
    expect(await requested(environment)).toEqual([{ [web]: two }]);
    repository.git('symbolic-ref', 'HEAD', 'refs/heads/next');
    const old = bodyOfPush({ before: one, after: two });
    await send(hook, old);
    await applied(admin, { hurry: true });
    expect(await requested(environment)).toEqual([{ [web]: three }]);
  });

  test('are found by polls, and a webhook that tells of their pushes is not taken for silent', async () => {
    const { admin, environment, web, hook, repository } = await place('HEAD');
    const one = repository.commit({ a: '1' });
    const poll = async () => {
      await reconcileFollowed(app.platform, KINDS);
      await sql`update git_branch set next_at = now() + interval '1 hour' where organization_id <> ${admin.organizationId}`.execute(app.db); // prettier-ignore
      await sql`update git_branch set next_at = now() where organization_id = ${admin.organizationId}`.execute(app.db);
      const loop = createPollLoop({ platform: app.platform, kinds: KINDS, repositories: reader() }, newId());
      await loop.look();
      await expect.poll(async () => (await branchesOf(admin)).every((found) => found.polled_at !== null && found.claim_token === null)).toBe(true); // prettier-ignore
      await loop.stop();
      await applied(admin, { hurry: true });
    };
    await poll();
    expect(await branchesOf(admin)).toMatchObject([{ branch: 'HEAD', head: one }]);
    const two = repository.commit({ a: '2' });
    await poll();
    expect(await requested(environment)).toEqual([{ [web]: two }]);
    const three = repository.commit({ a: '3' });
    await send(hook, bodyOfPush({ before: two, after: three }));
    await applied(admin);
    expect(await requested(environment)).toEqual([{ [web]: three }]);
    await sql`update git_webhook set heard_at = now() - interval '5 minutes' where organization_id = ${admin.organizationId}`.execute(app.db); // prettier-ignore
    await poll();
    const webhook = await app.db.selectFrom('git_webhook').selectAll().where('organization_id', '=', admin.organizationId).executeTakeFirstOrThrow(); // prettier-ignore
    expect(webhook.heard_at).not.toBeNull();
  });
});

test(
  'repeated, reordered, late and forged calls never move a branch to a commit that is not its head',
  { timeout: 120_000 },
  async () => {
    const { admin, environment, web, hook, repository } = await place();
    const random = makeRandom(98);
    const told: string[] = [];
    const heads: string[] = [];
    let withheld: string[] = [];
    for (let step = 0; step < 12; step++) {
      const before = heads.at(-1) ?? ZERO;
      const isForced = heads.length > 2 && random.below(3) === 0;
      if (isForced) repository.git('reset', '--hard', '--quiet', heads[random.below(heads.length - 1)]!);
      const head = isForced && random.below(2) === 0 ? repository.git('rev-parse', 'HEAD') : repository.commit({ a: String(step) }); // prettier-ignore
      const body = bodyOfPush({ before, after: head, forced: isForced });
      heads.push(head);
      withheld.push(body);
      const calls = random.below(3) === 0 ? [] : withheld.splice(0).toSorted(() => random.below(3) - 1);
      if (told.length > 0) calls.splice(random.below(calls.length + 1), 0, told[random.below(told.length)]!);
      calls.splice(random.below(calls.length + 1), 0, bodyOfPush({ before: head, after: commit(`forged ${step}`) }));
      await run(environment);
      await forget();
      const asked = await requested(environment);
      for (const [at, one] of calls.entries()) {
        await send(hook, one);
        if (at % 2 === 0) await applied(admin, { hurry: true });
      }
      await applied(admin, { hurry: true });
      told.push(...calls);
      const now = await headOf(admin);
      expect([head, heads.at(-2), undefined, null], `step ${step}`).toContain(now);
      for (const one of (await requested(environment)).slice(asked.length))
        expect(one, `step ${step}`).toEqual({ [web]: head });
    }
    const last = repository.commit({ a: 'last' });
    await send(hook, bodyOfPush({ before: heads.at(-1)!, after: last }));
    await applied(admin, { hurry: true });
    expect(await headOf(admin)).toBe(last);
    expect((await commitsOf(environment)).at(-1)).toBe(last);
  },
);
