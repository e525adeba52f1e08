import { describe, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { ok } from '#test/harness/app.ts';
import { IN_CLUSTER, loopOf, readArgoCds } from '#test/harness/argo-cd.ts';
import { useArgoCdApps, within } from '#services/kinds/argocd-app/argocd-app.fixture.ts';

const { app, argo, open, sync, connected, makeEnvironment, put, services, named, eventsOf } = useArgoCdApps();

describe('reading again', () => {
  test('what has not changed writes nothing', async () => {
    const { admin } = await connected();
    put({ name: 'a' }, { name: 'b' });
    await sync();
    const rows = async () =>
      (
        await sql`select id, xmin::text from service where organization_id = ${admin.organizationId} order by id`.execute(
          app.db,
        )
      ).rows;
    const before = await rows();
    await sync();
    expect(await rows()).toEqual(before);
    expect(before).toHaveLength(2);
  });

  test('moves an app with its namespace and with the mapping of its cluster, and it stays the same service', async () => {
    const { admin, organization, map } = await connected();
    const environment = await makeEnvironment(admin);
    put({ name: 'a' });
    await sync();
    const first = await named(admin, 'a');
    put({ name: 'a', destination: within(environment) });
    await sync();
    expect(await named(admin, 'a')).toMatchObject({ id: first.id, environment_id: environment.id });
    const spare = { name: 'spare', region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'fake' };
    const other = ok(await admin.post(`${organization}/cluster`, spare), 201);
    await map(IN_CLUSTER, other.id);
    await sync();
    expect(await named(admin, 'a')).toMatchObject({ id: first.id, cluster_id: other.id, project_name: 'argocd' });
    expect(await eventsOf(admin, first.id)).toEqual(['CREATE ENVIRONMENT', 'UPDATE ENVIRONMENT', 'UPDATE ENVIRONMENT']);
    const stages = await sql`select s.id from service s join deployment_stage d on d.id = s.stage_id
      where s.id = ${first.id} and d.environment_id = s.environment_id`.execute(app.db);
    expect(stages.rows).toHaveLength(1);
  });

  test('drops an app that is gone there, and two apps may exchange their places', async () => {
    const { admin } = await connected();
    const [one, two] = [await makeEnvironment(admin, 'one'), await makeEnvironment(admin, 'two')];
    put(
      { name: 'web', namespace: 'x', destination: within(one) },
      { name: 'web', namespace: 'y', destination: within(two) },
    );
    put({ name: 'gone' });
    await sync();
    const gone = await named(admin, 'gone');
    argo.remove('gone');
    put(
      { name: 'web', namespace: 'x', destination: within(two) },
      { name: 'web', namespace: 'y', destination: within(one) },
    );
    await sync();
    ok(await admin.get(`/argocdApp/${gone.id}`), 404);
    expect(await eventsOf(admin, gone.id)).toEqual(['CREATE ENVIRONMENT', 'DELETE ENVIRONMENT']);
    expect(await services(admin)).toHaveLength(2);
  });

  test('of an Argo CD that is away, lets nobody in or makes no sense changes nothing', async () => {
    const { admin, config } = await connected();
    put({ name: 'a' }, { name: 'b' });
    await sync();
    const before = await services(admin);
    const unchanged = async (reason: string) => {
      await sync();
      expect(await services(admin)).toEqual(before);
      expect(ok(await admin.get(config), 200)).toMatchObject({ status: 'error', reason });
    };
    await argo.stop();
    try {
      await unchanged('unreachable');
    } finally {
      await argo.start();
    }
    const account = argo.accounts.get(argo.token)!;
    account.projects = [];
    await unchanged('insufficient_permissions');
    argo.accounts.delete(argo.token);
    await unchanged('authentication_failed');
    argo.accounts.set(argo.token, account);
    for (const answer of ['{"items":[{"metadata":{}}]}', '{"items":{}}', 'null', '<html>', '{"items":[{"metada']) {
      argo.instead = (_request, response) => void response.writeHead(200).end(answer);
      await unchanged('unreachable');
    }
    argo.instead = undefined;
    account.projects = null;
    await sync();
    expect(ok(await admin.get(config), 200)).toMatchObject({ status: 'connected' });
  });

  test('by several processes at once makes each app, project and environment once', async () => {
    const { admin } = await connected();
    for (let index = 0; index < 20; index++) put({ name: `app-${index}` });
    for (let round = 0; round < 3; round++) await Promise.all(Array.from({ length: 4 }, () => sync()));
    const all = await services(admin);
    expect(all).toHaveLength(20);
    expect(new Set(all.map((service: { environment_id: string }) => service.environment_id)).size).toBe(1);
  });

  test('asks an Argo CD of one process at a time', async () => {
    await connected();
    let release = () => {};
    argo.gate = new Promise((resolve) => (release = resolve));
    argo.requests.length = 0;
    const first = sync();
    await expect.poll(() => argo.requests.length).toBe(1);
    const other = loopOf(app.platform);
    await other.look();
    await other.stop();
    expect(argo.requests).toHaveLength(1);
    release();
    await first;
  });

  test('lands nothing of a mapping or an address that was changed meanwhile', async () => {
    const { admin, organization, cluster, config } = await connected();
    put({ name: 'a' });
    for (const change of [
      () =>
        admin.delete(
          `${organization}/argoCdDestinationClusterMapping?agentClusterId=${cluster.id}&argocdClusterUrl=${encodeURIComponent(IN_CLUSTER)}`,
        ),
      () => admin.delete(config),
    ]) {
      let release = () => {};
      argo.gate = new Promise((resolve) => (release = resolve));
      argo.requests.length = 0;
      const reading = sync();
      await expect.poll(() => argo.requests.length).toBe(1);
      ok(await change(), 204);
      release();
      await reading;
      expect(await services(admin)).toEqual([]);
    }
  });

  test('ends when the process does, and another goes on at once', async () => {
    const { admin } = await connected();
    put({ name: 'a' });
    let release = () => {};
    argo.gate = new Promise((resolve) => (release = resolve));
    const stopped = loopOf(app.platform);
    await stopped.look();
    await expect.poll(() => argo.requests.length).toBeGreaterThan(0);
    await stopped.stop();
    release();
    argo.gate = open();
    await readArgoCds(app.platform);
    expect(await services(admin)).toHaveLength(1);
  });

  test('is tried again after a while when the apps cannot be landed, and nothing of them is there until then', async () => {
    const { admin } = await connected();
    put({ name: 'a' });
    await sql`create function refuse() returns trigger language plpgsql as 'begin raise exception ''no room''; end'`.execute(
      app.db,
    );
    await sql`create trigger refuse before insert on service for each row execute function refuse()`.execute(app.db);
    await sync();
    expect(await services(admin)).toEqual([]);
    const [{ rest } = { rest: 0 }] = (
      await sql<{ rest: number }>`select extract(epoch from next_at - now())::float8 as rest from argo_cd`.execute(
        app.db,
      )
    ).rows;
    expect(rest).toBeGreaterThan(30);
    await sql`drop function refuse cascade`.execute(app.db);
    await sync();
    expect(await services(admin)).toHaveLength(1);
  });
});

test('apps go with the cluster that has their Argo CD, wherever they have landed', async () => {
  const { admin, organization, cluster, config } = await connected();
  ok(await admin.delete(config), 204);
  const agent = { name: 'agent', region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'fake' };
  const { id } = ok(await admin.post(`${organization}/cluster`, agent), 201);
  ok(await admin.post(`/cluster/${id}/argoCdConfig`, { argocd_url: argo.url, argocd_token: argo.token }), 200);
  const mapping = { agent_cluster_id: id, argocd_cluster_url: IN_CLUSTER, cluster_id: cluster.id };
  ok(await admin.post(`${organization}/argoCdDestinationClusterMapping`, mapping), 200);
  put({ name: 'a' });
  await sync();
  expect(await named(admin, 'a')).toMatchObject({ cluster_id: cluster.id });
  ok(await admin.delete(`${organization}/cluster/${id}`), 204);
  expect(await services(admin)).toEqual([]);
});
