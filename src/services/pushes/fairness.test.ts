import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { KINDS } from '#services/mount.ts';
import { createPollLoop, reconcileFollowed } from '#services/pushes/polling.ts';
import { commit, usePushes } from '#services/pushes/pushes.fixture.ts';
import { RepositoryError } from '#services/sources/repository.ts';
import { useApp, type Actor } from '#test/harness/app.ts';

/** Repositories that hang; more than a process has slots. */
const HANGING = 12;

const app = useApp();
const [a, b] = [commit('a'), commit('b')];
let begun = 0;
const hang = async (signal: AbortSignal): Promise<never> => {
  begun++;
  await once(signal, 'abort');
  throw new RepositoryError('unreachable', 'It did not answer in time.');
};
const repositories = {
  heads: async ({ url, branches, signal }: { url: string; branches: readonly string[]; signal: AbortSignal }) =>
    url.includes('hanging') ? hang(signal) : new Map(branches.map((branch) => [branch, b])),
  head: async ({ url, signal }: { url: string; signal: AbortSignal }) => (url.includes('hanging') ? hang(signal) : b),
  changes: async () => ({ author: 'Grace', message: 'a change', paths: null }),
};
const { environmentOf, applicationIn, webhookOf, push, worker, applied, requested } = usePushes(app, {
  reader: () => repositories,
});

let poll: ReturnType<typeof createPollLoop> | undefined;
afterEach(async () => {
  begun = 0;
  await poll?.stop();
  poll = undefined;
  await sql`truncate git_push, git_branch`.execute(app.db);
});

/** Makes services of an organization whose repositories hang. */
async function hangingPlace() {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  for (let n = 0; n < HANGING; n++)
    await applicationIn(admin, environment, { git_repository: { url: `https://git.invalid/acme/hanging${n}.git`, branch: 'main' } }); // prettier-ignore
  return admin;
}

async function livelyPlace(): Promise<{ admin: Actor; environment: string; web: string }> {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  return { admin, environment, web: await applicationIn(admin, environment) };
}

test('repositories of one organization that hang hold up the pushes of no other one, and not all of their own', async () => {
  const hanging = await hangingPlace();
  const lively = await livelyPlace();
  for (let n = 0; n < HANGING; n++)
    await push(await webhookOf(hanging, `git.invalid/acme/hanging${n}`), { before: a, after: b });
  worker();
  await expect.poll(() => begun).toBe(HANGING);
  await push(await webhookOf(lively.admin), { before: a, after: b });
  await applied(lively.admin);
  expect(await requested(lively.environment)).toEqual([{ [lively.web]: b }]);
});

test('repositories that hang again leave the share of those that answer to them', async () => {
  const hanging = await hangingPlace();
  for (let n = 0; n < HANGING; n++)
    await push(await webhookOf(hanging, `git.invalid/acme/hanging${n}`), { before: a, after: b });
  await sql`update git_push set error = 'It did not answer in time.', failures = 3`.execute(app.db);
  worker();
  await expect.poll(() => begun).toBe(4);
  const environment = await environmentOf(hanging, 'other');
  const web = await applicationIn(hanging, environment);
  await push(await webhookOf(hanging), { before: a, after: b });
  await expect.poll(() => requested(environment)).toEqual([{ [web]: b }]);
  expect(begun).toBe(4);
});

test('polls of repositories that hang hold up those of no other organization', async () => {
  await hangingPlace();
  const lively = await livelyPlace();
  await reconcileFollowed(app.platform, KINDS);
  await sql`update git_branch set next_at = now() where organization_id = ${lively.admin.organizationId}`.execute(app.db); // prettier-ignore
  poll = createPollLoop({ platform: app.platform, kinds: KINDS, repositories }, newId());
  poll.start();
  await expect.poll(() => begun).toBeGreaterThanOrEqual(HANGING);
  const polled = () => app.db.selectFrom('git_branch').select('polled').where('organization_id', '=', lively.admin.organizationId).execute(); // prettier-ignore
  await expect.poll(polled).toEqual([{ polled: b }]);
});

test('a repository is asked with each token until one is let in, and an address that hangs is not asked again', async () => {
  const { admin, environment } = await livelyPlace();
  const asked: string[] = [];
  const { heads } = repositories;
  repositories.heads = async ({ url, branches }) => {
    asked.push(`${url.includes('ssh') ? 'ssh' : 'https'} ${branches.join(' ')}`);
    if (!url.startsWith('ssh')) throw new RepositoryError('failed', 'It cannot be read without credentials.');
    return new Map(branches.map((branch) => [branch, b]));
  };
  // Another service of the repository may read it, of another branch and over ssh.
  const other = { url: 'ssh://git@git.invalid:2222/acme/shop.git', branch: 'next' };
  await applicationIn(admin, environment, { git_repository: other, auto_deploy: false });
  worker();
  await push(await webhookOf(admin), { before: a, after: b });
  expect(await applied(admin)).toMatchObject([{ error: null, asks: 0, failures: 0 }]);
  repositories.heads = heads;
  expect(asked).toEqual(['https main', 'ssh main']);
});
