import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

const clusterOf = (organizationId: string) =>
  app.db.selectFrom('cluster').selectAll().where('organization_id', '=', organizationId).executeTakeFirstOrThrow();

describe('GET /organization', () => {
  test("lists the caller's organizations, and of a single one its name and id stand beside the list", async () => {
    const admin = await app.organization();
    const list = ok(await admin.get('/organization'), 200);
    expect(list.results).toHaveLength(1);
    expect(list.pagination.total_count).toBe(1);
    const [organization] = list.results;
    expect(list).toMatchObject({
      id: admin.organizationId,
      name: organization.name,
      created_at: organization.created_at,
    });
    expect(organization).toMatchObject({
      owner: admin.userId,
      plan: 'ENTERPRISE',
      organization_plan: { plan: 'ENTERPRISE', audit_logs_retention_in_days: 400 },
    });
    expect(ok(await admin.get(`/organization/${admin.organizationId}`), 200)).toEqual(organization);
  });
});

describe('POST /organization', () => {
  test('makes one for the first administrator, whose token acts in it from then on', async () => {
    const admin = await app.organization();
    const name = `second ${newId()}`;
    const made = ok(await admin.post('/organization', { name, plan: 'FREE', description: 'x' }), 201);
    expect(made).toMatchObject({ name, plan: 'FREE', description: 'x', owner: admin.userId });
    expect(ok(await admin.get(`/organization/${made.id}`), 200)).toEqual(made);
    const list = ok(await admin.get('/organization'), 200);
    expect(list.results.map((one: { id: string }) => one.id)).toEqual([admin.organizationId, made.id]);
    expect(list.id).toBeUndefined();
    ok(await admin.post(`/organization/${made.id}/project`, { name: 'p' }), 201);
  });

  test('leaves what the token of the other organization may do as it was', async () => {
    const admin = await app.organization();
    const made = ok(await admin.post('/organization', { name: newId() }), 201);
    const url = `/organization/${made.id}/apiToken`;
    const { token } = ok(await admin.post(url, { name: 'ci', scope: 'admin' }), 201);
    const call = { authorization: `Token ${token}` };
    ok(await app.anonymous('GET', `/organization/${made.id}`, undefined, call), 200);
    ok(await app.anonymous('GET', `/organization/${admin.organizationId}`, undefined, call), 404);
  });

  test('of one name at the same time gives one 201 and one 409', async () => {
    const admin = await app.organization();
    const name = newId();
    const answers = await Promise.all(
      [name, name.toUpperCase()].map((one) => admin.post('/organization', { name: one })),
    );
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, 409]);
  });

  test('takes full access', async () => {
    const admin = await app.organization();
    for (const scope of ['READ', 'DEPLOY', 'WRITE'] as const)
      ok(await (await admin.withScope(scope)).post('/organization', { name: newId() }), 403);
  });
});

describe('PUT /organization/{id}', () => {
  test('changes what is said, keeps the rest, and tells it in an event', async () => {
    const admin = await app.organization();
    const url = `/organization/${admin.organizationId}`;
    const name = `renamed ${newId()}`;
    ok(await admin.put(url, { name, website_url: 'https://a.example', admin_emails: ['a@b.example'] }), 200);
    const edited = ok(await admin.put(url, { name, plan: 'TEAM', description: 'd' }), 200);
    expect(edited).toMatchObject({ website_url: 'https://a.example', admin_emails: ['a@b.example'], plan: 'TEAM' });
    const event = await app.db
      .selectFrom('audit_event')
      .selectAll()
      .where('target_id', '=', admin.organizationId)
      .where('event_type', '=', 'UPDATE')
      .orderBy('id', 'desc')
      .executeTakeFirstOrThrow();
    expect(event).toMatchObject({ original_change: { plan: 'ENTERPRISE' }, change: { plan: 'TEAM' } });
  });

  test('twenty times at once never waits for itself', async () => {
    const admin = await app.organization();
    const url = `/organization/${admin.organizationId}`;
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) => admin.put(url, { name: `n${at} ${newId()}` })),
    );
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
  });

  test('is refused for a taken name, and without full access', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const { name } = ok(await other.get('/organization'), 200);
    ok(await admin.put(`/organization/${admin.organizationId}`, { name: name.toUpperCase() }), 409);
    ok(await (await admin.withScope('WRITE')).put(`/organization/${admin.organizationId}`, { name: newId() }), 403);
    ok(await admin.put(`/organization/${other.organizationId}`, { name: newId() }), 404);
  });
});

describe('DELETE /organization/{id}', () => {
  test('waits until the clusters are gone, then takes everything with it', async () => {
    const admin = await app.organization();
    const url = `/organization/${admin.organizationId}`;
    ok(await admin.post(`${url}/apiToken`, { name: 't', scope: 'READ' }), 201);
    ok(await admin.post(`${url}/project`, { name: 'p' }), 201);
    expect(ok(await admin.delete(url), 409).message).toContain('clusters');
    await app.db.deleteFrom('cluster').where('organization_id', '=', admin.organizationId).execute();
    ok(await (await admin.withScope('WRITE')).delete(url), 403);
    ok(await admin.delete(url), 204);
    ok(await admin.get(url), 401);
    const left = await app.db
      .selectFrom('role')
      .select('id')
      .where('organization_id', '=', admin.organizationId)
      .execute();
    expect(left).toEqual([]);
  });
});

describe('lists over the whole organization', () => {
  const build = async (admin: Actor) => {
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
    const [development, production] = await Promise.all(
      ['DEVELOPMENT', 'PRODUCTION'].map(async (mode) =>
        ok(await admin.post(`/project/${project.id}/environment`, { name: mode, mode }), 201),
      ),
    );
    const git_repository = { url: 'https://github.com/o/r.git', branch: 'main' };
    const application = ok(
      await admin.post(`/environment/${production.id}/application`, { name: 'app', git_repository }),
      201,
    );
    return { project, development, production, application };
  };

  test('answer services and environments with where they stand, filtered as asked', async () => {
    const admin = await app.organization();
    const { project, development, production, application } = await build(admin);
    const url = `/organization/${admin.organizationId}`;
    const { id: cluster_id } = await clusterOf(admin.organizationId);
    const { results } = ok(await admin.get(`${url}/services`), 200);
    expect(results).toEqual([
      expect.objectContaining({
        id: application.id,
        name: 'app',
        service_type: 'APPLICATION',
        project_id: project.id,
        environment_id: production.id,
        cluster_id,
      }),
    ]);
    for (const [query, count] of [
      [`project_id=${project.id}`, 1],
      [`environment_id=${development.id}`, 0],
      [`cluster_id=${newId()}`, 0],
    ] as const)
      expect(ok(await admin.get(`${url}/services?${query}`), 200).results, query).toHaveLength(count);
    expect(ok(await admin.get(`${url}/environments?page=1&page_size=1`), 200).pagination.total_count).toBe(2);
    expect(ok(await admin.get(`${url}/credentials`), 200).results).toEqual([]);
  });

  test('leave out what a role gives no access to', async () => {
    const admin = await app.organization();
    const { project, application } = await build(admin);
    const url = `/organization/${admin.organizationId}`;
    const role = ok(
      await admin.post(`${url}/customRole`, {
        name: 'no production',
        project_permissions: [
          { project_id: project.id, permissions: [{ environment_type: 'PRODUCTION', permission: 'NO_ACCESS' }] },
        ],
      }),
      201,
    );
    const { token } = ok(await admin.post(`${url}/apiToken`, { name: 'limited', role_id: role.id }), 201);
    const get = (path: string) => app.anonymous('GET', path, undefined, { authorization: `Token ${token}` });
    expect(ok(await get(`${url}/services`), 200).results).toEqual([]);
    const names = ok(await get(`${url}/environments`), 200).results.map((one: { name: string }) => one.name);
    expect(names).toEqual(['DEVELOPMENT']);
    ok(await get(`/application/${application.id}`), 403);
    ok(await get(`/project/${project.id}`), 200);
  });
});
