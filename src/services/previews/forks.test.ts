import { expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { useForks } from '#services/previews/forks.fixture.ts';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
useEngine(app, {}, undefined, { pretendsSources: true });
const fixture = usePreviews(app);
const { tell, environmentsOf } = fixture;
const { place, work, settled, listOf, runs, server } = useForks(app, fixture);

test(
  'the approved commit of a fork is deployed from the repository of the base, and a later one waits for another approval',
  { timeout: 90_000 },
  async () => {
    const { admin, environment, hook, push, forkUrl } = await place();
    const FORK = { headRepository: 2, headUrl: forkUrl };
    work();
    const first = push({ 'index.js': 'one\n' });
    ok(await tell(hook, { ...FORK, head: first }), 202);
    await settled(admin);
    const [waiting] = await listOf(admin, environment);
    expect(waiting).toMatchObject({
      number: 7,
      title: 'A change',
      author: 'mallory',
      head_repository: 'mallory/shop',
      head_commit_id: first,
      awaits_approval: true,
      approved_commit_id: null,
    });
    const url = `/environment/${environment}/forkPreview/${waiting.id}/approval`;
    ok(await admin.put(url, { commit_id: '1'.repeat(40) }), 409);
    expect(ok(await admin.put(url, { commit_id: first }), 200)).toMatchObject({ awaits_approval: false });
    const [made] = await settled(admin);
    expect(made).toMatchObject({ outcome: 'PREVIEWED', applied_commit: first });
    const preview = made!.environment_id!;
    const { id, git_repository } = await runs(admin, preview, first);
    expect(git_repository.branch).toBe('refs/pull/7/head');

    const second = push({ 'index.js': 'two\n' });
    ok(await tell(hook, { ...FORK, action: 'synchronize', head: second, at: 1 }), 202);
    expect(await settled(admin)).toMatchObject([{ outcome: 'AWAITS_APPROVAL', environment_id: preview }]);
    ok(await admin.put(url, { commit_id: first }), 409);
    // By hand it is the approved commit, too, and no other one.
    ok(await admin.post(`/application/${id}/deploy?wait=40`, {}), 200);
    ok(await admin.post(`/application/${id}/redeploy?wait=40`), 200);
    await runs(admin, preview, first);
    ok(await admin.post(`/application/${id}/deploy`, { git_commit_id: second }), 409);

    ok(await admin.put(url, { commit_id: second }), 200);
    expect(await settled(admin)).toMatchObject([
      { outcome: 'PREVIEWED', applied_commit: second, environment_id: preview },
    ]);
    await runs(admin, preview, second);

    ok(await admin.delete(url), 204);
    expect(await settled(admin)).toMatchObject([{ outcome: 'AWAITS_APPROVAL' }]);
    await expect.poll(async () => (await admin.get(`/environment/${preview}`)).status).toBe(404);
    ok(await admin.delete(url), 409);
    ok(await admin.put(url, { commit_id: second }), 200);
    const [again] = await settled(admin);
    await runs(admin, again!.environment_id!, second);

    ok(await tell(hook, { ...FORK, action: 'closed', head: second, at: 2 }), 202);
    expect(await settled(admin)).toMatchObject([{ outcome: 'REMOVED', approved_commit: null }]);
    expect((await environmentsOf(admin)).map(({ name }) => name)).toEqual(['dev']);
    const events = await sql<{
      change: any;
    }>`select change from audit_event where organization_id = ${admin.organizationId}
    and event_type = 'ACCEPT' and triggered_by_id = ${admin.userId} order by id`.execute(app.db);
    expect(events.rows.map(({ change }) => change.approved_commit_id)).toEqual([first, second, second]);
    // The calls name the address of the fork; the repository of the base is asked alone.
    const [own, ofFork] = [`${new URL(forkUrl).pathname}/`.replace('-fork/', '/'), new URL(forkUrl).pathname];
    expect(server().requests.some((path) => path.includes(own))).toBe(true);
    expect(server().requests.filter((path) => path.includes(ofFork))).toEqual([]);
    await fetch(`${forkUrl}/info/refs?service=git-upload-pack`);
    expect(server().requests.filter((path) => path.includes(ofFork))).toHaveLength(1);
  },
);
