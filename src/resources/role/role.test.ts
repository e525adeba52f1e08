import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

const urlOf = (admin: Actor) => `/organization/${admin.organizationId}`;
const rolesOf = (admin: Actor) => `${urlOf(admin)}/customRole`;
const project = async (admin: Actor, name: string) => ok(await admin.post(`${urlOf(admin)}/project`, { name }), 201);
const withRole = async (admin: Actor, roleId: string) => {
  const { token } = ok(await admin.post(`${urlOf(admin)}/apiToken`, { name: newId(), role_id: roleId }), 201);
  const call = { authorization: `Token ${token}` };
  return (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown) =>
    app.anonymous(method, path, body, call);
};

describe('the roles of an organization', () => {
  test('are the five built-in ones, then the custom ones', async () => {
    const admin = await app.organization();
    ok(await admin.post(rolesOf(admin), { name: 'Release team' }), 201);
    const { results } = ok(await admin.get(`${urlOf(admin)}/availableRole`), 200);
    expect(results.map((role: { name: string }) => role.name)).toEqual([
      'owner',
      'admin',
      'devops',
      'billing',
      'viewer',
      'Release team',
    ]);
    expect(ok(await admin.get(rolesOf(admin)), 200).results).toHaveLength(1);
  });

  test.each(['owner', 'admin', 'devops', 'billing', 'viewer'])('%s stays as it is', async (name) => {
    const admin = await app.organization();
    const { results } = ok(await admin.get(`${urlOf(admin)}/availableRole`), 200);
    const { id } = results.find((role: { name: string }) => role.name === name);
    ok(await admin.get(`${rolesOf(admin)}/${id}`), 404);
    expect(ok(await admin.put(`${rolesOf(admin)}/${id}`, { name: 'mine' }), 403).message).toContain('built in');
    ok(await admin.delete(`${rolesOf(admin)}/${id}`), 403);
    ok(await admin.post(rolesOf(admin), { name: name.toUpperCase() }), 409);
  });
});

describe('a custom role', () => {
  test('is answered whole: every cluster, project and mode, with what holds where it says nothing', async () => {
    const admin = await app.organization();
    const shop = await project(admin, 'shop');
    const role = ok(await admin.post(rolesOf(admin), { name: ' Ops ', description: 'd' }), 201);
    const permissions = ['DEVELOPMENT', 'PREVIEW', 'PRODUCTION', 'STAGING'].map((environment_type) => ({
      environment_type,
      permission: 'NO_ACCESS',
    }));
    expect(role).toMatchObject({
      name: 'Ops',
      description: 'd',
      cluster_permissions: [{ cluster_name: 'test', permission: 'ENV_CREATOR' }],
      project_permissions: [{ project_id: shop.id, project_name: 'shop', is_admin: false, permissions }],
    });
    expect(ok(await admin.get(`${rolesOf(admin)}/${role.id}`), 200)).toEqual(role);
    expect(ok(await admin.put(`${rolesOf(admin)}/${role.id}`, role), 200)).toMatchObject({
      project_permissions: role.project_permissions,
    });
  });

  test('may do what it says, down to the mode, and at once what it says anew', async () => {
    const admin = await app.organization();
    const [shop, blog] = [await project(admin, 'shop'), await project(admin, 'blog')];
    const environments: Record<string, { id: string }> = {};
    for (const mode of ['DEVELOPMENT', 'STAGING', 'PRODUCTION'])
      environments[mode] = ok(await admin.post(`/project/${shop.id}/environment`, { name: mode, mode }), 201);
    const role = ok(await admin.post(rolesOf(admin), { name: 'r' }), 201);
    const edit = (permissions: unknown[], is_admin = false) =>
      admin.put(`${rolesOf(admin)}/${role.id}`, {
        name: 'r',
        cluster_permissions: [],
        project_permissions: [{ project_id: shop.id, is_admin, permissions }],
      });
    const call = await withRole(admin, role.id);
    const statuses = () =>
      Promise.all(
        ['DEVELOPMENT', 'STAGING', 'PRODUCTION'].flatMap((mode) => [
          call('GET', `/environment/${environments[mode]!.id}`).then((answer) => answer.status),
          call('PUT', `/environment/${environments[mode]!.id}`, { name: mode }).then((answer) => answer.status),
        ]),
      );
    expect(await statuses()).toEqual([403, 403, 403, 403, 403, 403]);
    ok(await edit([]), 200);
    expect(await statuses()).toEqual([200, 403, 200, 403, 200, 403]);
    ok(
      await edit([
        { environment_type: 'DEVELOPMENT', permission: 'MANAGER' },
        { environment_type: 'STAGING', permission: 'DEPLOYER' },
        { environment_type: 'PRODUCTION', permission: 'NO_ACCESS' },
      ]),
      200,
    );
    expect(await statuses()).toEqual([200, 200, 200, 403, 403, 403]);
    ok(await call('POST', `/project/${shop.id}/environment`, { name: 'p', mode: 'PRODUCTION' }), 403);
    ok(await call('PUT', `/environment/${environments.DEVELOPMENT!.id}`, { name: 'x', mode: 'PRODUCTION' }), 403);
    ok(await call('PUT', `/project/${shop.id}`, { name: 'x' }), 403);
    ok(await call('PUT', `/project/${blog.id}`, { name: 'x' }), 403);
    ok(await call('GET', `/project/${blog.id}`), 403);
    ok(await call('POST', `${urlOf(admin)}/apiToken`, { name: 'x', scope: 'READ' }), 403);
    ok(await edit([], true), 200);
    expect(await statuses()).toEqual([200, 200, 200, 200, 200, 200]);
    ok(await call('PUT', `/project/${shop.id}`, { name: 'shop 2' }), 200);
    ok(await call('POST', `${urlOf(admin)}/project`, { name: 'x' }), 403);
  });

  test('has no access to a project that it does not name, nor to one that is made later', async () => {
    const admin = await app.organization();
    const [shop, blog] = [await project(admin, 'shop'), await project(admin, 'blog')];
    const project_permissions = [{ project_id: shop.id, is_admin: true }];
    const role = ok(await admin.post(rolesOf(admin), { name: 'r', project_permissions }), 201);
    const call = await withRole(admin, role.id);
    const later = await project(admin, 'later');
    for (const { id } of [blog, later]) {
      ok(await call('GET', `/project/${id}`), 403);
      ok(await call('GET', `/project/${id}/environment`), 403);
      ok(await call('POST', `/project/${id}/environment`, { name: 'e' }), 403);
    }
    expect(ok(await call('GET', `${urlOf(admin)}/project`), 200).results).toMatchObject([{ id: shop.id }]);
    const told = JSON.stringify([
      ok(await call('GET', rolesOf(admin)), 200),
      ok(await call('GET', `${urlOf(admin)}/events?pageSize=100`), 200),
      ok(await call('GET', `${urlOf(admin)}/targets?targetType=PROJECT`), 200),
    ]);
    expect(told).toContain(shop.id);
    for (const { id } of [blog, later]) expect(told).not.toContain(id);
    const said = ok(await admin.get(`${rolesOf(admin)}/${role.id}`), 200).project_permissions;
    const closed = said.filter((one: any) => one.permissions.every((mode: any) => mode.permission === 'NO_ACCESS'));
    expect(closed.map((one: any) => one.project_id)).toEqual([blog.id, later.id]);
  });

  test('makes environments only on clusters that it may use', async () => {
    const admin = await app.organization();
    const shop = await project(admin, 'shop');
    const { id: cluster_id } = await app.db
      .selectFrom('cluster')
      .select('id')
      .where('organization_id', '=', admin.organizationId)
      .executeTakeFirstOrThrow();
    const role = ok(
      await admin.post(rolesOf(admin), { name: 'r', project_permissions: [{ project_id: shop.id, is_admin: true }] }),
      201,
    );
    const call = await withRole(admin, role.id);
    const make = (name: string) => call('POST', `/project/${shop.id}/environment`, { name });
    ok(await make('one'), 201);
    const say = (permission: string) =>
      admin.put(`${rolesOf(admin)}/${role.id}`, { name: 'r', cluster_permissions: [{ cluster_id, permission }] });
    ok(await say('VIEWER'), 200);
    expect(ok(await make('two'), 403).message).toContain('cluster.use');
    ok(await say('ENV_CREATOR'), 200);
    ok(await make('two'), 201);
  });

  test('sees no project, environment or count that it has no access to', async () => {
    const admin = await app.organization();
    const [shop, blog] = [await project(admin, 'shop'), await project(admin, 'blog')];
    for (const mode of ['DEVELOPMENT', 'PRODUCTION'])
      ok(await admin.post(`/project/${shop.id}/environment`, { name: mode, mode }), 201);
    const none = (environment_type: string) => ({ environment_type, permission: 'NO_ACCESS' });
    const role = ok(
      await admin.post(rolesOf(admin), {
        name: 'r',
        project_permissions: [
          { project_id: shop.id, permissions: [none('PRODUCTION')] },
          { project_id: blog.id, permissions: ['DEVELOPMENT', 'PREVIEW', 'PRODUCTION', 'STAGING'].map(none) },
        ],
      }),
      201,
    );
    const call = await withRole(admin, role.id);
    const results = async (path: string) => ok(await call('GET', path), 200).results;
    expect(await results(`${urlOf(admin)}/project`)).toMatchObject([{ id: shop.id }]);
    expect(await results(`${urlOf(admin)}/project/stats`)).toMatchObject([{ id: shop.id }]);
    expect(await results(`/project/${shop.id}/environment`)).toMatchObject([{ mode: 'DEVELOPMENT' }]);
    expect(await results(`/project/${shop.id}/environment/stats`)).toHaveLength(1);
    ok(await call('GET', `/project/${blog.id}`), 403);
  });

  test('is refused with the field that is wrong', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const [mine, foreign] = [await project(admin, 'mine'), await project(other, 'foreign')];
    const entry = { project_id: mine.id };
    const mode = { environment_type: 'STAGING', permission: 'VIEWER' };
    for (const [permissions, field] of [
      [{ project_permissions: [{ project_id: foreign.id }] }, 'project_permissions[0].project_id'],
      [{ project_permissions: [{}] }, 'project_permissions[0].project_id'],
      [{ project_permissions: [entry, entry] }, 'project_permissions[1].project_id'],
      [
        { project_permissions: [{ ...entry, permissions: [mode, mode] }] },
        'project_permissions[0].permissions[1].environment_type',
      ],
      [
        { project_permissions: [{ ...entry, permissions: [{ environment_type: 'STAGING' }] }] },
        'project_permissions[0].permissions[0].permission',
      ],
      [{ cluster_permissions: [{ cluster_id: newId(), permission: 'ADMIN' }] }, 'cluster_permissions[0].cluster_id'],
    ] as const)
      expect(ok(await admin.post(rolesOf(admin), { name: newId(), ...permissions }), 400).errors).toEqual([
        { field, message: expect.any(String) },
      ]);
  });

  test('goes only when nobody has it', async () => {
    const admin = await app.organization();
    const role = ok(await admin.post(rolesOf(admin), { name: 'r' }), 201);
    const token = ok(await admin.post(`${urlOf(admin)}/apiToken`, { name: 't', role_id: role.id }), 201);
    expect(ok(await admin.delete(`${rolesOf(admin)}/${role.id}`), 409).message).toContain('1 API tokens');
    ok(await admin.delete(`${urlOf(admin)}/apiToken/${token.id}`), 204);
    const invitation = ok(
      await admin.post(`${urlOf(admin)}/inviteMember`, { email: 'a@b.example', role_id: role.id }),
      201,
    );
    ok(await admin.delete(`${rolesOf(admin)}/${role.id}`), 409);
    ok(await admin.delete(`${urlOf(admin)}/inviteMember/${invitation.id}`), 204);
    ok(await admin.delete(`${rolesOf(admin)}/${role.id}`), 204);
    ok(await admin.get(`${rolesOf(admin)}/${role.id}`), 404);
  });

  test('of one name at the same time is one 201 and one 409', async () => {
    const admin = await app.organization();
    const answers = await Promise.all(['Ops', 'ops'].map((name) => admin.post(rolesOf(admin), { name })));
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, 409]);
  });

  test('is made by administrators only, and is not there for others', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const role = ok(await admin.post(rolesOf(admin), { name: 'r' }), 201);
    const writer = await admin.withScope('WRITE');
    ok(await writer.post(rolesOf(admin), { name: 'x' }), 403);
    ok(await writer.put(`${rolesOf(admin)}/${role.id}`, { name: 'x' }), 403);
    ok(await writer.get(`${rolesOf(admin)}/${role.id}`), 200);
    for (const url of [`${rolesOf(admin)}/${role.id}`, `${rolesOf(other)}/${role.id}`]) ok(await other.get(url), 404);
  });

  test('writes an event for each change', async () => {
    const admin = await app.organization();
    const role = ok(await admin.post(rolesOf(admin), { name: 'r' }), 201);
    ok(await admin.put(`${rolesOf(admin)}/${role.id}`, { name: 's' }), 200);
    ok(await admin.delete(`${rolesOf(admin)}/${role.id}`), 204);
    const events = await app.db
      .selectFrom('audit_event')
      .select(['event_type', 'target_type', 'sub_target_type'])
      .where('target_id', '=', role.id)
      .orderBy('id')
      .execute();
    expect(events).toEqual(
      ['CREATE', 'UPDATE', 'DELETE'].map((event_type) => ({
        event_type,
        target_type: 'MEMBERS_AND_ROLES',
        sub_target_type: 'CUSTOM_ROLE',
      })),
    );
  });
});
