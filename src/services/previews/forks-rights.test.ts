import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { useForkCalls } from '#services/previews/fork-calls.fixture.ts';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import { commit } from '#services/pushes/pushes.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp({ QUARTERDECK_PREVIEWS_PER_ORGANIZATION: '1' });
const fixture = usePreviews(app);
const { applicationIn, worker, settled, environmentsOf, servicesOf } = fixture;
const { place, namesOf, forget } = useForkCalls(app, fixture);

const [a, b] = [commit('a'), commit('b')];

test.each(['GITHUB', 'GITEA', 'GITLAB'] as const)(
  'an approved fork at %s is followed by the ref of its pull request',
  async (sender) => {
    const { admin, waiting } = await place(sender);
    const url = await waiting({ head: a });
    ok(await admin.put(url, { commit_id: a }), 200);
    worker();
    const [made] = await settled(admin);
    expect(made).toMatchObject({ outcome: 'PREVIEWED', approved_commit: a, approved_by: admin.userId });
    const { web } = await servicesOf(made!.environment_id!);
    const ref = sender === 'GITLAB' ? 'refs/merge-requests/7/head' : 'refs/pull/7/head';
    expect(web!.spec).toMatchObject({ git_repository: { branch: ref } });
    const [environment] = (await environmentsOf(admin)).filter(({ name }) => name === 'dev PR 7');
    expect(environment).toMatchObject({ mode: 'PREVIEW', fork_ref: ref, fork_commit: a, expires_at: expect.any(Date) });
    const { rows } = await sql<{
      commit: string;
    }>`select snapshot -> 'services' -> 0 ->> 'commitId' as commit from deployment
    where organization_id = ${admin.organizationId}`.execute(app.db);
    expect(rows).toEqual([{ commit: a }]);
    await forget(admin);
  },
);

test('a fork at Bitbucket, and one on a host cluster, cannot be approved', async () => {
  const { admin, waiting } = await place('BITBUCKET');
  const url = await waiting({ head: a });
  expect(ok(await admin.put(url, { commit_id: a }), 409).message).toContain(a.slice(0, 12));
  const shortened = await sql<{ head_commit: string }>`select head_commit from pull_request where organization_id = ${admin.organizationId}`.execute(app.db); // prettier-ignore
  await sql`update pull_request set head_commit = ${a} where organization_id = ${admin.organizationId}`.execute(app.db);
  expect(shortened.rows[0]!.head_commit).toBe(a.slice(0, 12));
  expect(ok(await admin.put(url, { commit_id: a }), 409).message).toContain('Bitbucket');
  await sql`update pull_request set provider = null where organization_id = ${admin.organizationId}`.execute(app.db);
  expect(ok(await admin.put(url, { commit_id: a }), 409).message).toContain('provider');
  await sql`update pull_request set provider = 'GITHUB' where organization_id = ${admin.organizationId}`.execute(
    app.db,
  );
  await sql`update cluster set runtime = 'host' where organization_id = ${admin.organizationId}`.execute(app.db);
  expect(ok(await admin.put(url, { commit_id: a }), 409).message).toContain('host cluster');
  worker();
  expect(await settled(admin)).toMatchObject([{ outcome: 'AWAITS_APPROVAL', environment_id: null }]);
});

test('a cluster that becomes a host cluster after an approval runs nothing of it, neither at first nor later', async () => {
  const { admin, environment, say, waiting } = await place();
  await applicationIn(admin, environment, { name: 'api', auto_preview: true });
  const runtimeOf = (runtime: string) =>
    sql`update cluster set runtime = ${runtime} where organization_id = ${admin.organizationId}`.execute(app.db);
  const refusal = expect.stringContaining('does not run on a host cluster');
  const url = await waiting({ head: a });
  ok(await admin.put(url, { commit_id: a }), 200);
  await runtimeOf('host');
  let loops = worker();
  expect(await settled(admin)).toMatchObject([{ outcome: 'REFUSED', error: refusal, environment_id: null }]);
  expect(await namesOf(admin)).toEqual(['dev']);
  await loops.stop();

  await runtimeOf('fake');
  ok(await admin.put(url, { commit_id: a }), 200);
  loops = worker();
  const [made] = await settled(admin);
  expect(made).toMatchObject({ outcome: 'PREVIEWED', error: null });
  await say({ action: 'synchronize', head: b, at: 1 });
  await settled(admin);
  await loops.stop();
  await forget(admin);
  ok(await admin.put(url, { commit_id: b }), 200);
  await runtimeOf('host');
  worker();
  await settled(admin);
  /** Reasons why the services of all deployments cannot run; null for one that can. */
  const unable = async () => {
    const { rows } = await sql<{ unable: string | null }>`select one ->> 'unable' as unable
      from deployment, jsonb_array_elements(snapshot -> 'services') one
      where organization_id = ${admin.organizationId}`.execute(app.db);
    return rows.map((row) => row.unable);
  };
  expect(await unable()).toEqual([refusal, refusal]);
  await forget(admin);
  const preview = made!.environment_id!;
  const { web } = await servicesOf(preview);
  expect(ok(await admin.post(`/application/${web!.id}/deploy`, {}), 400).message).toEqual(refusal);
  ok(await admin.post(`/environment/${preview}/deploy`), 200);
  expect(await unable()).toEqual([refusal, refusal]);
  await forget(admin);
});

test('who may not edit the environment, or not deploy its services, approves nothing', async () => {
  const { admin, waiting, list } = await place();
  const url = await waiting({ head: a });
  for (const scope of ['READ', 'DEPLOY'] as const) {
    const other = await admin.withScope(scope);
    expect(await list(other)).toHaveLength(1);
    ok(await other.put(url, { commit_id: a }), 403);
    ok(await other.delete(url), 403);
  }
  for (const action of ['environment.edit', 'service.deploy']) {
    const opa_policy = `package p\ndefault allow := false\nallow if input.action != "${action}"`;
    const body = { name: newId(), opa_policy };
    const { token } = ok(await admin.post(`/organization/${admin.organizationId}/policyApiToken`, body), 201);
    const put = await app.anonymous('PUT', url, { commit_id: a }, { authorization: `Token ${token}` });
    expect([action, put.status]).toEqual([action, 403]);
  }
  const stranger = await app.organization();
  ok(await stranger.put(url, { commit_id: a }), 404);
  ok(await stranger.delete(url), 404);
  ok(await stranger.get(url.replace(/\/[^/]+\/approval$/, '')), 404);
  expect(await list()).toMatchObject([{ awaits_approval: true, approved_commit_id: null, approved_by: null }]);
});

test('an approval names the head in full, of a pull request of a fork that is open', async () => {
  const { admin, waiting, approvalOf, say, list } = await place();
  const url = await waiting({ head: a });
  for (const commit_id of [a.slice(0, 12), a.toUpperCase(), 'main', '', null, undefined])
    ok(await admin.put(url, { commit_id }), 400);
  ok(await admin.put(url, { commit_id: a, force: true }), 400);
  expect(ok(await admin.put(url, { commit_id: b }), 409).message).toContain(a);
  ok(await admin.put(approvalOf(newId()), { commit_id: a }), 404);
  ok(await admin.delete(url), 409);
  const loops = worker();
  await say({ number: 8, head: b, headRepository: 1 });
  const own = (await settled(admin)).find(({ outcome }) => outcome === 'PREVIEWED')!;
  ok(await admin.put(approvalOf(own.id), { commit_id: b }), 404);
  await say({ action: 'closed', head: a, at: 1 });
  await settled(admin);
  await loops.stop();
  expect(await list()).toEqual([]);
  expect(ok(await admin.put(url, { commit_id: a }), 409).message).toContain('closed');
  await forget(admin);
});

test('a push that comes before the approved commit is deployed has nothing deployed', async () => {
  const { admin, waiting, say } = await place();
  const url = await waiting({ head: a });
  ok(await admin.put(url, { commit_id: a }), 200);
  await say({ action: 'synchronize', head: b, at: 1 });
  worker();
  // The call may be applied after the look; whatever comes first, the later commit is never deployed.
  const [preview] = await settled(admin);
  expect(preview!.outcome).toBe('AWAITS_APPROVAL');
  const { rows } = await sql<{ text: string }>`select snapshot::text as text from deployment where organization_id = ${admin.organizationId}`.execute(app.db); // prettier-ignore
  for (const { text } of rows) expect(text).not.toContain(b);
  await forget(admin);
});

test('whoever approved and became a viewer, or left, or whose token was deleted, has nothing deployed', async () => {
  const viewer = await place();
  let url = await viewer.waiting({ head: a });
  ok(await viewer.admin.put(url, { commit_id: a }), 200);
  const { organizationId, userId } = viewer.admin;
  const role = await app.db.selectFrom('role').select('id').where('organization_id', '=', organizationId).where('name', 'ilike', 'viewer').executeTakeFirstOrThrow(); // prettier-ignore
  await sql`update member set role_id = ${role.id} where user_id = ${userId}`.execute(app.db);

  const gone = await place();
  url = await gone.waiting({ head: a });
  ok(await gone.admin.put(url, { commit_id: a }), 200);
  await sql`delete from member where user_id = ${gone.admin.userId}`.execute(app.db);

  const token = await place();
  url = await token.waiting({ head: a });
  const writer = await token.admin.withScope('WRITE');
  ok(await writer.put(url, { commit_id: a }), 200);
  await sql`delete from api_token where organization_id = ${token.admin.organizationId} and scope = 'WRITE'`.execute(
    app.db,
  );

  worker();
  for (const { admin } of [viewer, gone, token]) {
    const [preview] = await settled(admin);
    expect(preview).toMatchObject({ outcome: 'REFUSED', environment_id: null, error: expect.stringContaining('must approve it again') }); // prettier-ignore
    expect(await namesOf(admin)).toEqual(['dev']);
  }
  // Somebody who may approves it again.
  ok(await token.admin.put(url, { commit_id: a }), 200);
  expect(await settled(token.admin)).toMatchObject([{ outcome: 'PREVIEWED' }]);
  await forget(token.admin);
});

test('previews of forks count for the limit of the organization, and expired ones are made again by an approval alone', async () => {
  const { admin, waiting, say, list, approvalOf } = await place();
  const url = await waiting({ head: a });
  ok(await admin.put(url, { commit_id: a }), 200);
  worker();
  await settled(admin);
  await say({ number: 8, head: b });
  await settled(admin);
  const second = (await list()).find(({ number }: any) => number === 8);
  ok(await admin.put(approvalOf(second.id), { commit_id: b }), 200);
  expect((await settled(admin))[1]).toMatchObject({ outcome: 'REFUSED', error: expect.stringContaining('limit') });
  await forget(admin);
  await sql`delete from service where organization_id = ${admin.organizationId} and environment_id in
    (select environment_id from preview where organization_id = ${admin.organizationId})`.execute(app.db);
  await sql`delete from environment where organization_id = ${admin.organizationId} and fork_ref is not null`.execute(
    app.db,
  );
  await say({ action: 'edited', head: a, at: 1 });
  expect((await settled(admin))[0]).toMatchObject({ outcome: 'PREVIEWED', environment_id: null });
  ok(await admin.put(url, { commit_id: a }), 200);
  expect((await settled(admin))[0]).toMatchObject({ outcome: 'PREVIEWED', environment_id: expect.any(String) });
  await forget(admin);
});

test('secrets of a PRODUCTION environment are not copied for a fork either', async () => {
  const { admin, environment, waiting } = await place();
  ok(await admin.put(`/environment/${environment}`, { name: 'prod', mode: 'PRODUCTION' }), 200);
  ok(await admin.post(`/environment/${environment}/secret`, { key: 'PAYMENTS', value: 'top-secret' }), 201);
  ok(await admin.put(await waiting({ head: a }), { commit_id: a }), 200);
  worker();
  expect(await settled(admin)).toMatchObject([{ outcome: 'REFUSED', environment_id: null }]);
  expect(await namesOf(admin)).toEqual(['prod']);
});
