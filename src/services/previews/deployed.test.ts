import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { KINDS } from '#services/mount.ts';
import { createCallLoop } from '#services/previews/calls.ts';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import { useProvider } from '#services/previews/provider.fixture.ts';
import { startGitServer, type GitServer } from '#runtimes/tools/git/testing.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
useEngine(app, {}, undefined, { pretendsSources: true });
const fixture = usePreviews(app);
const { webhookOf, tell, worker, settled, callsOf, servicesOf } = fixture;
const { provider, place, told, reporter } = useProvider(app, fixture);

const root = makeRepositoryRoot();
const repository = root.make('shop');
repository.commit({ Dockerfile: 'FROM x\n' });
repository.git('checkout', '-q', '-b', 'feature');
const [a, b, c] = ['a', 'b', 'c'].map((text) => repository.commit({ 'index.js': `${text}\n` })) as [string, string, string]; // prettier-ignore
let server: GitServer;
beforeAll(async () => {
  server = await startGitServer({ root: root.folder });
  provider.git = server.url;
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  root.remove();
});
const placeHere = () => place({ more: { dockerfile_path: 'Dockerfile' } });

test('success is told of a commit only when the preview runs it', { timeout: 60_000 }, async () => {
  const { admin, key } = await placeHere();
  const hook = await webhookOf(admin, key);
  const loops = worker();
  let previewId = '';
  const deployed = async () => {
    const { web } = previewId === '' ? {} : await servicesOf(previewId);
    if (!web?.release_id) return undefined;
    const { rows } = await sql<{
      id: string;
    }>`select resolution -> 'commit' ->> 'id' as id from release where id = ${web.release_id}`.execute(app.db);
    return rows[0]?.id;
  };
  const early: unknown[] = [];
  let telling: ReturnType<typeof reporter> | undefined;
  provider.onStatus = async ({ state, commit: of }) => {
    const runs = await deployed();
    if (state === 'success' && runs !== of) early.push({ of, runs });
    // The loop is stopped before it hears the answer.
    if (state === 'success') await telling?.stop();
  };
  const statesOf = (of: string) => provider.statuses.filter(({ commit: one, label }) => one === of && label.startsWith('quarterdeck/preview/')).map(({ state }) => state); // prettier-ignore
  const succeeded = async (of: string) => {
    const loop = reporter();
    telling = loop;
    await expect
      .poll(
        async () => {
          await sql`update pull_request_report set due_at = now() where status = 'WAITING'`.execute(app.db);
          void loop.look();
          return statesOf(of).at(-1);
        },
        { timeout: 30_000, interval: 20 },
      )
      .toBe('success');
    await loop.stop();
    telling = undefined;
  };

  ok(await tell(hook, { head: a }), 202);
  previewId = (await settled(admin))[0]!.environment_id!;
  await succeeded(a);
  expect(await deployed()).toBe(a);

  // The call is applied, and no worker has looked at the preview yet: its environment is still DEPLOYED with the commit before.
  await loops.stop();
  const calls = createCallLoop({ platform: app.platform, kinds: KINDS }, newId());
  calls.start();
  ok(await tell(hook, { action: 'synchronize', head: b, at: 1 }), 202);
  await expect.poll(async () => (await callsOf(admin)).every(({ status }) => status === 'ENDED')).toBe(true);
  await calls.stop();
  await told(admin);
  expect(statesOf(b)).toEqual(['pending']);
  expect(provider.comments.get('1')).toContain('Is being brought up to date.');

  worker();
  await settled(admin);
  await succeeded(b);
  expect(await deployed()).toBe(b);
  expect(early).toEqual([]);

  // What ran stays a success when its pull request ends.
  provider.onStatus = () => undefined;
  ok(await tell(hook, { action: 'closed', head: b, at: 2 }), 202);
  await settled(admin);
  await told(admin);
  expect(statesOf(b).at(-1)).toBe('success');
  expect(provider.comments.get('1')).toMatch(/(?:Is being removed|Removed)\.\n/);
});

test('a rule that is switched off leaves a later commit without a status', { timeout: 60_000 }, async () => {
  const { admin, environment, key } = await placeHere();
  const hook = await webhookOf(admin, key);
  worker();
  ok(await tell(hook, { head: a }), 202);
  await settled(admin);
  await fixture.setRule(admin, environment, { auto_preview: false, on_demand_preview: false });
  ok(await tell(hook, { action: 'synchronize', head: c, at: 1 }), 202);
  await settled(admin);
  await told(admin);
  expect(provider.statuses.filter(({ commit: of }) => of === c)).toEqual([]);
});
