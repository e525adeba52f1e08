import { expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { newId } from '#kernel/ids.ts';
import { KINDS } from '#services/mount.ts';
import { createPollLoop, reconcileFollowed } from '#services/pushes/polling.ts';
import { bodyOfPush, commit, headersOf, usePushes } from '#services/pushes/pushes.fixture.ts';
import type { Sender } from '#services/pushes/signature.ts';
import { useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
const { git, repositories, environmentOf, applicationIn, webhookOf, replay, worker, applied, requested } =
  usePushes(app);
const [a, b] = [commit('a'), commit('b')];

/** Makes services of two repositories whose branches are polled in an hour only, and a webhook. */
async function place() {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  const web = await applicationIn(admin, environment);
  const url = 'https://git.invalid/acme/other.git';
  await applicationIn(admin, environment, { git_repository: { url, branch: 'main' } });
  const hook = await webhookOf(admin);
  await reconcileFollowed(app.platform, KINDS);
  await sql`update git_branch set next_at = now() + interval '1 hour', head = ${a}, polled = ${a}, wanted = 0`.execute(
    app.db,
  );
  await app.db.updateTable('service').set({ newest_commit: a }).where('id', '=', web).execute();
  return { admin, environment, web, hook };
}

/** Returns the repositories whose branches are due. */
const dueOf = async ({ organizationId }: Actor) =>
  (
    await app.db
      .selectFrom('git_branch')
      .select('repository')
      .where('organization_id', '=', organizationId)
      .where('next_at', '<=', sql<Date>`now()`)
      .execute()
  ).map(({ repository }) => repository);

/** Body of a push above 1 MiB. */
const large = () => JSON.stringify({ ...JSON.parse(bodyOfPush({ before: a, after: b })), more: 'x'.repeat(1 << 20) });

test.each(['GITHUB', 'GITEA', 'GITLAB', 'BITBUCKET'] as const)(
  'a push of %s above 1 MiB is refused, and its repository is asked at once',
  async (sender: Sender) => {
    const { admin, hook } = await place();
    const body = large();
    const right = headersOf(sender, body);
    expect((await replay(hook, body, right)).status).toBe(413);
    expect(await dueOf(admin)).toEqual(['git.invalid/acme/shop']);
    expect(await applied(admin)).toEqual([]);
  },
);

test('a call above 1 MiB without the right signature, for another event or above 32 MiB changes nothing', async () => {
  const { admin, hook } = await place();
  const body = large();
  const huge = 'x'.repeat((32 << 20) + 1);
  for (const [text, headers] of [
    [body, headersOf('GITHUB', body, { secret: 'another' })],
    [body, headersOf('GITHUB', `${body} `)],
    [body, headersOf('GITHUB', body, { event: 'pull_request' })],
    [body, {}],
    [huge, headersOf('GITHUB', huge)],
  ] as const)
    expect((await replay(hook, text, headers)).status).toBe(413);
  expect((await replay(`/gitWebhook/${newId()}`, body, headersOf('GITHUB', body))).status).toBe(413);
  expect((await replay('/gitWebhook/none', body, headersOf('GITHUB', body))).status).toBe(413);
  expect(await dueOf(admin)).toEqual([]);
});

test('a signed call that makes no sense has its repository asked at once, and a forged one does not', async () => {
  const { admin, hook } = await place();
  worker();
  const body = '{"ref":"refs/heads/main","before":7';
  expect((await replay(hook, body, headersOf('GITHUB', body, { secret: 'another' }))).status).toBe(404);
  expect(await dueOf(admin)).toEqual([]);
  expect((await replay(hook, body, headersOf('GITHUB', body))).status).toBe(202);
  expect((await applied(admin))[0]!.error).not.toBeNull();
  expect(await dueOf(admin)).toEqual(['git.invalid/acme/shop']);
});

test('a lost call is deployed by that poll, also where polls are off, and counts its webhook as one that calls', async () => {
  const { admin, environment, web, hook } = await place();
  const body = large();
  await replay(hook, body, headersOf('GITHUB', body));
  await sql`update git_webhook set heard_at = now() - interval '5 minutes' where organization_id = ${admin.organizationId}`.execute(
    app.db,
  );
  // The other branch is due as well, and is left alone.
  await sql`update git_branch set next_at = now() where organization_id = ${admin.organizationId}`.execute(app.db);
  git.head = b;
  worker();
  const settings = { ...app.platform.settings, gitPollSeconds: 0 };
  const loop = createPollLoop({ platform: { ...app.platform, settings }, kinds: KINDS, repositories }, newId());
  await loop.look();
  const branches = () =>
    app.db
      .selectFrom('git_branch')
      .selectAll()
      .where('organization_id', '=', admin.organizationId)
      .orderBy('repository')
      .execute();
  await expect.poll(async () => (await branches()).map(({ polled }) => polled)).toEqual([a, b]);
  await loop.stop();
  await applied(admin);
  expect(await requested(environment)).toEqual([{ [web]: b }]);
  expect((await branches()).map(({ wanted }) => wanted)).toEqual([0, 0]);
  const { heard_at } = await app.db
    .selectFrom('git_webhook')
    .select('heard_at')
    .where('organization_id', '=', admin.organizationId)
    .executeTakeFirstOrThrow();
  expect(heard_at).not.toBeNull();
});
