import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { readFileOf } from '#kernel/parsing/index.ts';
import { sql } from '#platform/database/index.ts';
import { deleteExpiredEnvironments } from '#services/capabilities/environment/actions/expiry.ts';
import { bodyOfPullRequest, pullRequestHeaders, usePreviews } from '#services/previews/previews.fixture.ts';
import { createCallLoop } from '#services/previews/calls.ts';
import { KINDS } from '#services/mount.ts';
import { claimPreviews, lockPullRequest } from '#services/previews/queries.ts';
import { wantReport } from '#services/previews/report-queries.ts';
import { commit, headersOf } from '#services/pushes/pushes.fixture.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
const fixture = usePreviews(app);
const { applicationIn, environmentOf, webhookOf, sourceOf, setRule, tell, call, push, worker, settled, callsOf, environmentsOf, servicesOf, requested } = fixture; // prettier-ignore

const [a, b, c] = [commit('a'), commit('b'), commit('c')];
const REPOSITORY = { url: 'https://git.invalid/acme/shop.git', branch: 'feature' };
const namesOf = async (admin: Actor) => (await environmentsOf(admin)).map(({ name }) => name);

async function place() {
  const admin = await app.organization();
  const source = await sourceOf(admin);
  worker();
  return { admin, ...source, hook: await webhookOf(admin) };
}

test('a push to the branch of a pull request deploys followers of the branch, and the preview only by the call about the pull request', async () => {
  const { admin, hook } = await place();
  const other = await environmentOf(admin, 'other');
  const follower = await applicationIn(admin, other, { git_repository: REPOSITORY });
  ok(await tell(hook, { head: a }), 202);
  const [preview] = await settled(admin);
  const id = preview!.environment_id!;
  const { web } = await servicesOf(id);
  await sql`update deployment set status = 'ENDED', outcome = 'SUCCESS', ended_at = now() where environment_id = ${id}`.execute(
    app.db,
  );

  await push(hook, { branch: 'feature', before: a, after: b });
  const pushes = fixture.pushWorker();
  await fixture.applied(admin);
  expect(await requested(other)).toEqual([{ [follower]: b }]);
  expect(await requested(id)).toEqual([{ [web!.id]: a }]);

  ok(await tell(hook, { action: 'synchronize', head: b, at: 1 }), 202);
  expect(await settled(admin)).toMatchObject([{ outcome: 'PREVIEWED', applied_commit: b }]);
  expect(await requested(id)).toEqual([{ [web!.id]: a }, { [web!.id]: b }]);
  await pushes.stop();
});

test('a head that no service of its preview follows any more is refused, not told as deployed', async () => {
  const { admin, hook } = await place();
  ok(await tell(hook, { head: a }), 202);
  const [preview] = await settled(admin);
  const { web } = await servicesOf(preview!.environment_id!);
  ok(await admin.put(`/application/${web!.id}`, { git_repository: { ...REPOSITORY, branch: 'elsewhere' } }), 200);
  ok(await tell(hook, { action: 'synchronize', head: b, at: 1 }), 202);
  const [refused] = await settled(admin);
  expect(refused).toMatchObject({ outcome: 'REFUSED', applied_commit: a });
  expect(refused!.error).toContain('No service of dev PR 7 follows feature any more');
});

test('a preview of which nothing was heard for the days of the settings is removed, and comes back with the next commit', async () => {
  const { admin, hook } = await place();
  ok(await tell(hook, { head: a }), 202);
  const [preview] = await settled(admin);
  const id = preview!.environment_id!;
  const signal = new AbortController().signal;
  /** Has the time of the environment go by. */
  const pass = async (time: string) => {
    await sql`update environment set expires_at = expires_at - ${time}::interval where organization_id = ${admin.organizationId}`.execute(
      app.db,
    );
    await sql`delete from deployment where environment_id = ${id}`.execute(app.db);
    await deleteExpiredEnvironments(app.platform, signal);
    return namesOf(admin);
  };
  expect(await pass('6 days 23 hours')).toEqual(['dev', 'dev PR 7']);
  ok(await tell(hook, { action: 'synchronize', head: b, at: 1 }), 202);
  await settled(admin);
  expect(await pass('6 days 23 hours')).toEqual(['dev', 'dev PR 7']);
  expect(await pass('1 hour')).toEqual(['dev']);
  expect(await servicesOf(id)).toEqual({});
  ok(await tell(hook, { action: 'edited', head: b, at: 2 }), 202);
  expect(await settled(admin)).toMatchObject([{ environment_id: null }]);
  ok(await tell(hook, { action: 'synchronize', head: c, at: 3 }), 202);
  await settled(admin);
  expect(await namesOf(admin)).toEqual(['dev', 'dev PR 7']);
});

test('a comment without the command is not stored, also if its call is signed', async () => {
  const { admin, hook } = await place();
  const comment = async (text: string) => {
    const body = JSON.stringify({
      action: 'created',
      issue: { number: 7, pull_request: { url: 'https://git.invalid' } },
      comment: { id: newId(), body: text, author_association: 'OWNER' },
    });
    return ok(await call(hook, body, headersOf('GITHUB', body, { event: 'issue_comment' })), 202).is_new;
  };
  expect([await comment('Looks good.'), await comment('preview, please')]).toEqual([false, false]);
  expect(await callsOf(admin)).toEqual([]);
  expect(await comment('/preview')).toBe(true);
});

test('a call that waits behind other files of its organization is put off, and that is no attempt', async () => {
  const admin = await app.organization();
  await sourceOf(admin);
  // Large enough to be read in a thread.
  const body = JSON.stringify({ ...JSON.parse(bodyOfPullRequest('GITHUB', { head: a })), filler: 'x'.repeat(200_000) });
  ok(await call(await webhookOf(admin), body, pullRequestHeaders('GITHUB', body)), 202);
  const file = { name: 'file', text: `[${'1,'.repeat(400_000)}1]` };
  // One is read and 64 wait, which is the most, for as long as it takes: each that was read is followed by another one.
  let isFull = true;
  const fill = async () => {
    while (isFull) await readFileOf(admin.organizationId, 'json-shape', file, { shape: true }).catch(() => undefined);
  };
  const files = Array.from({ length: 65 }, fill);
  worker();
  const putOff = { status: 'RUNNING', claim_token: null, attempts: 0, error: null };
  await expect.poll(async () => (await callsOf(admin))[0]).toMatchObject(putOff);
  isFull = false;
  await Promise.all(files);
  await sql`update pull_request_call set lease_until = now() where claim_token is null`.execute(app.db);
  expect(await settled(admin)).toMatchObject([{ outcome: 'PREVIEWED' }]);
});

test('a report is wanted while a call about its pull request is being applied: neither waits for the other', async () => {
  const { admin, hook } = await place();
  ok(await tell(hook, { head: a }), 202);
  const [preview] = await settled(admin);
  const of = { organization_id: admin.organizationId, repository: 'git.invalid/acme/shop' };
  await app.db.transaction().execute(async (db) => {
    expect(await lockPullRequest(db, of, 7)).toBeDefined();
    await app.db.transaction().execute(async (other) => {
      await sql`set local lock_timeout = '1s'`.execute(other);
      await wantReport(other, admin, preview!.pull_request_id);
    });
  });
});

test('a preview of an image, and one whose rule is saved again, are not previewed by further images and pull requests', async () => {
  const { admin, environment, hook } = await place();
  await setRule(admin, environment);
  const registry = ok(
    await admin.post(`/organization/${admin.organizationId}/containerRegistry`, {
      name: newId(),
      kind: 'DOCKER_HUB',
      url: 'https://docker.io',
      config: {},
    }),
    201,
  );
  const image = { registry_id: registry.id, image_name: 'acme/web', tag: '1', ports: [] };
  ok(await admin.post(`/environment/${environment}/container`, { name: 'box', auto_preview: true, ...image }), 201);
  for (const tag of ['2', '3'])
    ok(
      await admin.post(`/organization/${admin.organizationId}/container/preview`, { image_name: 'acme/web', tag }),
      200,
    );
  expect(await namesOf(admin)).toEqual(['dev', 'dev preview 2', 'dev preview 3']);
  ok(await tell(hook, { head: a }), 202);
  await settled(admin);
  expect(await namesOf(admin)).toEqual(['dev', 'dev PR 7', 'dev preview 2', 'dev preview 3']);
});

test('a chart is previewed by the repository of its values, and warned of only where nothing of it is in git', async () => {
  const { admin, environment, hook } = await place();
  const charts = {
    name: newId(),
    kind: 'HTTPS',
    url: 'https://charts.example.com',
    skip_tls_verification: false,
    config: {},
  };
  const { id } = ok(await admin.post(`/organization/${admin.organizationId}/helmRepository`, charts), 201);
  const source = { helm_repository: { repository: id, chart_name: 'shop', chart_version: '1.0.0' } };
  const git = { git_repository: { ...REPOSITORY, branch: 'main' }, paths: ['values.yaml'] };
  const make = (name: string, more: object) =>
    admin.post(`/environment/${environment}/helm`, { name, source, auto_preview: true, ...more });
  const bare = await make('bare', {});
  expect(String(bare.headers['quarterdeck-warnings'])).toContain('auto_preview: ');
  const made = await make('chart', { values_override: { file: { git } } });
  expect([made.status, made.headers['quarterdeck-warnings']]).toEqual([201, undefined]);

  ok(await tell(hook, { head: a }), 202);
  const [preview] = await settled(admin);
  const { chart, web } = await servicesOf(preview!.environment_id!);
  expect(chart!.spec).toMatchObject({ values_override: { file: { git: { git_repository: { branch: 'feature' } } } } });
  expect(preview!.awaited).toEqual({ [chart!.id]: a, [web!.id]: a });
});

test('organizations take turns: one with many previews to make has no more than two under way', async () => {
  const hooks: [Actor, string][] = [];
  for (let n = 0; n < 2; n++) {
    const admin = await app.organization();
    await sourceOf(admin);
    hooks.push([admin, await webhookOf(admin)]);
  }
  const [[many, manyHook], [one, oneHook]] = hooks as [[Actor, string], [Actor, string]];
  for (let number = 1; number <= 5; number++) ok(await tell(manyHook, { number, head: a }), 202);
  ok(await tell(oneHook, { head: a }), 202);
  const calls = createCallLoop({ platform: app.platform, kinds: KINDS }, newId());
  calls.start();
  const isApplied = async (admin: Actor) => (await callsOf(admin)).every(({ status }) => status === 'ENDED');
  await expect.poll(async () => (await isApplied(many)) && (await isApplied(one))).toBe(true);
  await calls.stop();
  await sql`update preview set due_at = now() - interval '1 minute' where organization_id = ${many.organizationId}`.execute(
    app.db,
  );
  const claim = async (limit: number) =>
    (await claimPreviews(app.db, { limit, nodeId: newId(), leaseSeconds: 15 })).map(({ organization_id: id }) => id);
  expect((await claim(2)).toSorted()).toEqual([many.organizationId, one.organizationId].toSorted());
  expect(await claim(4)).toEqual([many.organizationId]);
  expect(await claim(4)).toEqual([]);
});
