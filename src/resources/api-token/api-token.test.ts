import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { createApiToken, listApiTokens, revokeApiToken } from '#resources/api-token/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody } from '#test/harness/engine.ts';
import { secretOf } from '#test/harness/tokens.ts';

const app = useApp();

const urlOf = (admin: Actor) => `/organization/${admin.organizationId}`;
const tokensOf = (admin: Actor) => `${urlOf(admin)}/apiToken`;
const callWith = (token: string) => (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown) =>
  app.anonymous(method, path, body, { authorization: `Token ${token}` });
const roleId = async (admin: Actor, name: string): Promise<string> =>
  ok(await admin.get(`${urlOf(admin)}/availableRole`), 200).results.find((role: { name: string }) => role.name === name)
    .id;

describe('an API token', () => {
  test('is shown once, in the answer that makes it, and stands nowhere else', async () => {
    const admin = await app.organization();
    const made = ok(await admin.post(tokensOf(admin), { name: ' ci ', description: 'd', scope: 'write' }), 201);
    expect(made).toMatchObject({ name: 'ci', description: 'd', scope: 'WRITE', role_name: 'devops', expires_at: null });
    expect(made).toMatchObject({ role_id: await roleId(admin, 'devops'), creator_name: 'First Administrator' });
    expect(made.token).toMatch(/^qd_[0-9a-f]{32}_[\w-]{43}$/);
    ok(await callWith(made.token)('POST', `${urlOf(admin)}/project`, { name: 'p' }), 201);
    const secret = secretOf(made.token);
    const list = ok(await admin.get(tokensOf(admin)), 200);
    const { token: _token, ...shown } = made;
    expect(list.results.at(-1)).toEqual(shown);
    const [rows, events] = [
      await app.db.selectFrom('api_token').selectAll().where('id', '=', made.id).execute(),
      await app.db.selectFrom('audit_event').selectAll().where('target_id', '=', made.id).execute(),
    ];
    expect(events).toMatchObject([{ event_type: 'CREATE', sub_target_type: 'API_TOKEN', target_name: 'ci' }]);
    expect(JSON.stringify([list, rows, events])).not.toContain(secret);
  });

  test.each([
    ['READ', { read: 200, write: 403, members: 403 }],
    ['deploy', { read: 200, write: 403, members: 403 }],
    ['Write', { read: 200, write: 201, members: 403 }],
    ['ADMIN', { read: 200, write: 201, members: 201 }],
  ])('of the scope %s does what the scope says', async (scope, expected) => {
    const admin = await app.organization();
    const call = callWith(ok(await admin.post(tokensOf(admin), { name: 't', scope }), 201).token);
    expect({
      read: (await call('GET', `${urlOf(admin)}/project`)).status,
      write: (await call('POST', `${urlOf(admin)}/project`, { name: 'p' })).status,
      members: (await call('POST', `${urlOf(admin)}/inviteMember`, { email: 'a@b.example' })).status,
    }).toEqual(expected);
  });

  test('takes a role instead of a scope, and both only when they say the same', async () => {
    const admin = await app.organization();
    const role_id = await roleId(admin, 'viewer');
    const made = ok(await admin.post(tokensOf(admin), { name: 'a', role_id, scope: null }), 201);
    expect(made).toMatchObject({ role_id, role_name: 'viewer' });
    ok(await callWith(made.token)('POST', `${urlOf(admin)}/project`, { name: 'p' }), 403);
    ok(await admin.post(tokensOf(admin), { name: 'b', role_id, scope: 'READ' }), 201);
    const other = await app.organization();
    for (const [body, field] of [
      [{ role_id, scope: 'ADMIN' }, 'scope'],
      [{}, 'role_id'],
      [{ scope: 'ROOT' }, 'scope'],
      [{ scope: 'NONE' }, 'scope'],
      [{ role_id: await roleId(other, 'viewer') }, 'role_id'],
      [{ scope: 'READ', expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    ] as const)
      expect(ok(await admin.post(tokensOf(admin), { name: newId(), ...body }), 400).errors[0].field).toBe(field);
  });

  test('a role_id that is no id is refused with the operation that lists the roles', async () => {
    const admin = await app.organization();
    const { errors } = ok(await admin.post(tokensOf(admin), { name: 'a', role_id: 'viewer' }), 400);
    const message = 'must be the id of a role; GET /organization/{organizationId}/availableRole lists them';
    expect(errors).toEqual([{ field: 'role_id', message }]);
  });

  test('that is no longer taken is answered with the operation that makes another', async () => {
    const admin = await app.organization();
    const made = ok(await admin.post(tokensOf(admin), { name: 'a', scope: 'READ' }), 201);
    ok(await admin.delete(`${tokensOf(admin)}/${made.id}`), 204);
    const { message } = ok(await callWith(made.token)('GET', urlOf(admin)), 401);
    const operation = 'POST /organization/{organizationId}/apiToken';
    expect(message).toBe(`The token is invalid, expired or revoked: create another by ${operation}.`);
  });

  test('ends when it is revoked, and when its time is over', async () => {
    const admin = await app.organization();
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const made = ok(await admin.post(tokensOf(admin), { name: 'a', scope: 'READ', expires_at }), 201);
    const call = callWith(made.token);
    expect(made.expires_at).toBe(expires_at);
    ok(await call('GET', urlOf(admin)), 200);
    await app.db
      .updateTable('api_token')
      .set({ expires_at: new Date(Date.now() - 1) })
      .where('id', '=', made.id)
      .execute();
    ok(await call('GET', urlOf(admin)), 401);
    const other = ok(await admin.post(tokensOf(admin), { name: 'b', scope: 'READ' }), 201);
    ok(await admin.delete(`${tokensOf(admin)}/${other.id}`), 204);
    ok(await callWith(other.token)('GET', urlOf(admin)), 401);
    ok(await admin.delete(`${tokensOf(admin)}/${other.id}`), 404);
  });

  test('of one name at the same time is one 201 and one 409', async () => {
    const admin = await app.organization();
    const answers = await Promise.all(['Ci', 'cI'].map((name) => admin.post(tokensOf(admin), { name, scope: 'READ' })));
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, 409]);
  });

  test('is made and revoked by administrators only, in their organization only', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const made = ok(await admin.post(tokensOf(admin), { name: 'a', scope: 'READ' }), 201);
    for (const scope of ['READ', 'DEPLOY', 'WRITE'] as const) {
      const actor = await admin.withScope(scope);
      ok(await actor.post(tokensOf(admin), { name: newId(), scope: 'READ' }), 403);
      ok(await actor.delete(`${tokensOf(admin)}/${made.id}`), 403);
    }
    ok(await other.delete(`${tokensOf(admin)}/${made.id}`), 404);
    ok(await other.delete(`${tokensOf(other)}/${made.id}`), 404);
    ok(await other.post(tokensOf(admin), { name: 'x', scope: 'READ' }), 404);
  });

  test('is found by a part of its name or of its creator', async () => {
    const admin = await app.organization();
    for (const name of ['deploy one', 'Deploy two', 'other'])
      ok(await admin.post(tokensOf(admin), { name, scope: 'READ' }), 201);
    expect(ok(await admin.get(`${tokensOf(admin)}?name=DEPLOY`), 200).results).toHaveLength(2);
    expect(ok(await admin.get(`${tokensOf(admin)}?name=deploy&page=2&page_size=1`), 200)).toMatchObject({
      results: [{ name: 'Deploy two' }],
      pagination: { total_count: 2 },
    });
    expect(ok(await admin.get(`${tokensOf(admin)}?name=deploy&creatorName=administrator`), 200).results).toHaveLength(
      2,
    );
    expect(ok(await admin.get(`${tokensOf(admin)}?creatorName=nobody`), 200).results).toEqual([]);
  });

  test('repeated with its Idempotency-Key is the same token', async () => {
    const admin = await app.organization();
    const key = { 'idempotency-key': newId() };
    const [one, two] = [1, 2].map(() => admin.post(tokensOf(admin), { name: 'a', scope: 'READ' }, key));
    expect((await one!).body).toEqual((await two!).body);
  });
});

describe('a token with a policy', () => {
  const policiesOf = (admin: Actor) => `${urlOf(admin)}/policyApiToken`;
  const READS = 'package p\ndefault allow := false\nallow if input.level == "READ"';

  test('does only what the policy allows, and of that only what its role may', async () => {
    const admin = await app.organization();
    const [shop, blog] = await Promise.all(
      ['shop', 'blog'].map(async (name) => ok(await admin.post(`${urlOf(admin)}/project`, { name }), 201)),
    );
    const opa_policy = `${READS}\nallow if { input.action == "project.edit"; input.project_id == "${shop.id}" }`;
    const made = ok(await admin.post(policiesOf(admin), { name: 'p', opa_policy }), 201);
    expect(made).toMatchObject({ name: 'p', opa_policy, user_sub: admin.userId, role_name: 'admin' });
    const call = callWith(made.token);
    ok(await call('GET', `/project/${blog.id}`), 200);
    ok(await call('PUT', `/project/${shop.id}`, { name: 'shop 2' }), 200);
    ok(await call('PUT', `/project/${blog.id}`, { name: 'blog 2' }), 403);
    ok(await call('POST', `${urlOf(admin)}/project`, { name: 'x' }), 403);
    const body = { name: 'q', opa_policy, role_id: await roleId(admin, 'viewer') };
    const weak = callWith(ok(await admin.post(policiesOf(admin), body), 201).token);
    ok(await weak('GET', `/project/${shop.id}`), 200);
    ok(await weak('PUT', `/project/${shop.id}`, { name: 'shop 3' }), 403);
  });

  test('gives nothing on, whatever its policy allows', async () => {
    const admin = await app.organization();
    const made = ok(await admin.post(policiesOf(admin), { name: 'p', opa_policy: 'package p\nallow := true' }), 201);
    const call = callWith(made.token);
    ok(await call('POST', `${urlOf(admin)}/project`, { name: 'x' }), 201);
    for (const [method, path, body] of [
      ['POST', tokensOf(admin), { name: 'x', scope: 'READ' }],
      ['POST', policiesOf(admin), { name: 'x', opa_policy: READS }],
      ['POST', `${urlOf(admin)}/customRole`, { name: 'x' }],
      ['POST', `${urlOf(admin)}/inviteMember`, { email: 'a@b.example' }],
      ['POST', `${urlOf(admin)}/transferOwnership`, { user_id: newId() }],
      ['POST', '/organization', { name: newId() }],
      ['PUT', '/account', { communication_email: 'a@b.example' }],
    ] as const)
      ok(await call(method, path, body), 403);
  });

  test('is refused with a policy that cannot be read, and says where', async () => {
    const admin = await app.organization();
    const answer = await admin.post(policiesOf(admin), { name: 'p', opa_policy: 'package p\nallow if {' });
    expect(ok(answer, 400).errors).toEqual([{ field: 'opa_policy', message: expect.stringContaining('line 2') }]);
  });

  test('has a list of its own', async () => {
    const admin = await app.organization();
    const made = ok(await admin.post(policiesOf(admin), { name: 'p', opa_policy: READS }), 201);
    const { token: _token, user_sub: _sub, ...shown } = made;
    expect(ok(await admin.get(policiesOf(admin)), 200).results).toEqual([shown]);
    const plain = ok(await admin.get(tokensOf(admin)), 200).results.map((one: { id: string }) => one.id);
    expect(plain).not.toContain(made.id);
    ok(await admin.delete(`${tokensOf(admin)}/${made.id}`), 404);
    ok(await admin.post(tokensOf(admin), { name: 'P', scope: 'READ' }), 409);
    ok(await admin.delete(`${policiesOf(admin)}/${made.id}`), 204);
    ok(await callWith(made.token)('GET', urlOf(admin)), 401);
  });
});

describe('a token that is limited to a place', () => {
  /** An organization with two projects, the first with two environments and a service in each. */
  async function world() {
    const admin = await app.organization();
    const [shop, blog] = [await project('shop'), await project('blog')] as const;
    async function project(name: string) {
      return ok(await admin.post(`${urlOf(admin)}/project`, { name }), 201).id as string;
    }
    async function environment(projectId: string, name: string) {
      const { id } = ok(await admin.post(`/project/${projectId}/environment`, { name }), 201);
      const made = ok(await admin.post(`/environment/${id}/application`, exampleBody()), 201);
      return { id: id as string, web: made.id as string };
    }
    const [one, two, other] = [
      await environment(shop, 'one'),
      await environment(shop, 'two'),
      await environment(blog, 'one'),
    ];
    const token = async (body: object) =>
      ok(await admin.post(tokensOf(admin), { name: newId(), scope: 'ADMIN', ...body }), 201);
    return { admin, shop, blog, one, two, other, token };
  }

  test('does in its environment what its scope allows, and nothing elsewhere', async () => {
    const { admin, shop, blog, one, two, other, token } = await world();
    const made = await token({ environment_id: one.id });
    expect(made).toMatchObject({ project_id: shop, environment_id: one.id });
    const { token: _text, ...shown } = made;
    expect(ok(await admin.get(tokensOf(admin)), 200).results.at(-1)).toEqual(shown);
    const call = callWith(made.token);
    const variable = { key: 'A', value: 'a' };
    ok(await call('GET', `/environment/${one.id}`), 200);
    ok(await call('POST', `/application/${one.web}/environmentVariable`, variable), 201);
    ok(await call('POST', `/environment/${one.id}/environmentVariable`, { ...variable, key: 'B' }), 201);
    ok(await call('POST', `/application/${one.web}/deploy`), 200);
    ok(await call('GET', `/project/${shop}`), 200);
    ok(await call('POST', `/project/${shop}/environmentVariable`, variable), 403);
    ok(await call('PUT', `/project/${shop}`, { name: 'shop 2' }), 403);
    for (const [path, id] of [['application', two.web], ['environment', two.id], ['application', other.web], ['project', blog]])
      expect((await call('GET', `/${path}/${id}`)).status, `${path} of another place`).toBeGreaterThanOrEqual(403);
    ok(await call('POST', `/project/${shop}/environment`, { name: 'three' }), 403);
    const listed = async (path: string) => ok(await call('GET', path), 200).results.map(({ id }: { id: string }) => id);
    expect(await listed(`${urlOf(admin)}/project`)).toEqual([shop]);
    expect(await listed(`/project/${shop}/environment`)).toEqual([one.id]);
    expect(await listed(`${urlOf(admin)}/services`)).toEqual([one.web]);
  }); // prettier-ignore

  test('does in its project what its scope allows, makes environments, and sees no other project', async () => {
    const { admin, shop, blog, two, other, token } = await world();
    const call = callWith((await token({ project_id: shop, scope: 'WRITE' })).token);
    ok(await call('PUT', `/project/${shop}`, { name: 'shop 2' }), 200);
    ok(await call('POST', `/environment/${two.id}/deploy`), 200);
    ok(await call('POST', `/project/${shop}/environment`, { name: 'three' }), 201);
    expect((await call('GET', `/project/${blog}`)).status).toBeGreaterThanOrEqual(403);
    expect((await call('POST', `/environment/${other.id}/deploy`)).status).toBeGreaterThanOrEqual(403);
    ok(await call('POST', `${urlOf(admin)}/project`, { name: 'mine' }), 403);
    const reader = callWith((await token({ project_id: shop, scope: 'READ' })).token);
    ok(await reader('GET', `/environment/${two.id}`), 200);
    ok(await reader('POST', `/environment/${two.id}/deploy`), 403);
  });

  test('gives nothing on and changes nothing of the organization', async () => {
    const { admin, shop, token } = await world();
    const call = callWith((await token({ project_id: shop })).token);
    ok(await call('GET', urlOf(admin)), 200);
    for (const [method, path, body] of [
      ['POST', tokensOf(admin), { name: 'x', scope: 'READ' }],
      ['POST', tokensOf(admin), { name: 'x', scope: 'READ', project_id: shop }],
      ['POST', `${urlOf(admin)}/inviteMember`, { email: 'a@b.example' }],
      ['PUT', urlOf(admin), { name: 'x', plan: 'FREE' }],
      ['POST', '/organization', { name: newId() }],
      ['PUT', '/account', { communication_email: 'a@b.example' }],
    ] as const)
      ok(await call(method, path, body), 403);
  });

  test('is gone with its place', async () => {
    const { admin, one, two, token } = await world();
    const [gone, stays] = [await token({ environment_id: one.id }), await token({ environment_id: two.id })];
    ok(await callWith(gone.token)('GET', urlOf(admin)), 200);
    ok(await admin.delete(`/application/${one.web}`), 204);
    await app.db.deleteFrom('service').where('id', '=', one.web).execute();
    ok(await admin.delete(`/environment/${one.id}`), 204);
    await app.db.deleteFrom('environment').where('id', '=', one.id).execute();
    ok(await callWith(gone.token)('GET', urlOf(admin)), 401);
    ok(await callWith(stays.token)('GET', urlOf(admin)), 200);
  });

  test('is refused for a place that the organization does not have, or two that contradict each other', async () => {
    const { admin, blog, one } = await world();
    const strange = await world();
    for (const [body, field] of [
      [{ project_id: strange.shop }, 'project_id'],
      [{ environment_id: strange.one.id }, 'environment_id'],
      [{ environment_id: newId() }, 'environment_id'],
      [{ project_id: blog, environment_id: one.id }, 'environment_id'],
      [{ project_id: 'shop' }, 'project_id'],
    ] as const)
      expect(
        ok(await admin.post(tokensOf(admin), { name: newId(), scope: 'READ', ...body }), 400).errors[0].field,
      ).toBe(field);
  });
});

describe('the command line', () => {
  test('makes, lists and revokes tokens for the first owner', async () => {
    const admin = await app.organization();
    const { organizationId } = admin;
    const made = await createApiToken(app.context, organizationId, { name: 'cli', scope: 'ADMIN' });
    ok(await callWith(made.token)('GET', '/account'), 200);
    const listed = (await listApiTokens(app.context, organizationId)).find((token) => token.name === 'cli');
    expect(listed).toMatchObject({ id: made.id, scope: 'ADMIN' });
    expect(listed).not.toHaveProperty('token');
    await revokeApiToken(app.context, organizationId, 'CLI');
    ok(await callWith(made.token)('GET', '/account'), 401);
    await expect(revokeApiToken(app.context, organizationId, 'CLI')).rejects.toThrow('API token not found');
    await expect(createApiToken(app.context, newId(), { name: 'x', scope: 'ADMIN' })).rejects.toThrow('not found');
  });
});
