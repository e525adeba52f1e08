import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { listed, makeTree, messageOf, pathOf, type Tree } from '#services/capabilities/variables/variables.fixture.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

const on = (tree: Tree, scope: 'PROJECT' | 'ENVIRONMENT' | 'APPLICATION') => ({
  variable_scope: scope,
  variable_parent_id: { PROJECT: tree.project, ENVIRONMENT: tree.environment, APPLICATION: tree.application }[scope],
});

describe('/variable', () => {
  test('answers variables and secrets in one shape, the value of a secret as null and the description as a string', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const secret = ok(
      await admin.post('/variable', { key: 'S', value: 'hidden', is_secret: true, ...on(tree, 'APPLICATION') }),
      201,
    );
    expect(secret).toEqual({
      id: secret.id,
      created_at: secret.created_at,
      updated_at: secret.updated_at,
      key: 'S',
      value: null,
      mount_path: null,
      description: '',
      enable_interpolation_in_file: false,
      overridden_variable: null,
      aliased_variable: null,
      scope: 'APPLICATION',
      variable_type: 'VALUE',
      service_id: tree.application,
      service_name: 'web',
      service_type: 'APPLICATION',
      owned_by: 'QOVERY',
      is_secret: true,
      secret_manager_access_id: null,
    });
    const plain = ok(
      await admin.post('/variable', { key: 'V', value: 'v', is_secret: false, ...on(tree, 'PROJECT') }),
      201,
    );
    expect(plain).toMatchObject({ value: 'v', is_secret: false });
    expect(plain).not.toHaveProperty('service_id');
    const list = async (query: string) =>
      ok(await admin.get(`/variable?parent_id=${tree.application}&scope=APPLICATION${query}`), 200)
        .results.filter((one: { scope: string }) => one.scope !== 'BUILT_IN')
        .map((one: { key: string }) => one.key);
    expect(await list('')).toEqual(['S', 'V']);
    expect(await list('&is_secret=true')).toEqual(['S']);
    expect(await list('&is_secret=false')).toEqual(['V']);
    expect(ok(await admin.get(`/variable/${secret.id}`), 200)).toEqual(secret);
  });

  test('overrides and aliases into the scope and parent that the body names, by the same rules', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const { id } = ok(
      await admin.post('/variable', { key: 'A', value: 'a', is_secret: true, ...on(tree, 'ENVIRONMENT') }),
      201,
    );
    const target = { override_scope: 'APPLICATION', override_parent_id: tree.application };
    const override = ok(await admin.post(`/variable/${id}/override`, { value: 'b', ...target }), 201);
    expect(override).toMatchObject({
      key: 'A',
      value: null,
      is_secret: true,
      overridden_variable: { id, value: null },
    });
    const alias = ok(
      await admin.post(`/variable/${id}/alias`, {
        key: 'B',
        alias_scope: 'ENVIRONMENT',
        alias_parent_id: tree.environment,
      }),
      201,
    );
    expect(alias).toMatchObject({ key: 'B', aliased_variable: { id, key: 'A' } });
    const into = (scope: string, parent: string, value: unknown = 'x') =>
      admin.post(`/variable/${id}/override`, { value, override_scope: scope, override_parent_id: parent });
    expect(messageOf(await into('ENVIRONMENT', tree.environment), 400)).toContain('lower scope');
    expect((await into('PROJECT', tree.project)).status).toBe(404);
    expect((await into('APPLICATION', tree.application)).status).toBe(409);
    expect((await into('APPLICATION', tree.sibling, null)).status).toBe(400);
    expect(ok(await into('APPLICATION', newId()), 400).errors[0].field).toBe('override_parent_id');
    expect(ok(await into('BUILT_IN', tree.project), 400).errors[0].field).toBe('override_scope');
    expect(ok(await into('JOB', tree.application), 400).errors[0].field).toBe('override_parent_id');
    const other = await makeTree(admin);
    expect((await into('APPLICATION', other.application)).status).toBe(404);
    expect(
      (
        await admin.post(`/variable/${alias.id}/alias`, {
          key: 'C',
          alias_scope: 'APPLICATION',
          alias_parent_id: tree.application,
        })
      ).status,
    ).toBe(400);
    expect((await admin.put(`/variable/${alias.id}`, { key: 'B', value: 'other' })).status).toBe(400);
    expect((await admin.put(`/variable/${override.id}`, { key: 'C' })).status).toBe(400);
  });

  test('edits and deletes what is on any holder', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    for (const scope of ['PROJECT', 'ENVIRONMENT', 'APPLICATION'] as const) {
      const { id } = ok(
        await admin.post('/variable', { key: scope, value: 'a', is_secret: false, ...on(tree, scope) }),
        201,
      );
      expect(ok(await admin.put(`/variable/${id}`, { key: `${scope}_2`, value: 'b' }), 200)).toMatchObject({
        value: 'b',
      });
      expect((await admin.delete(`/variable/${id}`)).status).toBe(204);
      expect((await admin.get(`/variable/${id}`)).status).toBe(404);
    }
  });

  test('serves every kind of service that has a scope, and leaves out service_type where its set lacks the kind', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const { stage_id } = await app.db
      .selectFrom('service')
      .select('stage_id')
      .where('id', '=', tree.application)
      .executeTakeFirstOrThrow();
    for (const kind of ['CONTAINER', 'JOB', 'HELM', 'TERRAFORM', 'AGENTIC_WORKFLOW']) {
      const id = newId();
      await app.db
        .insertInto('service')
        .values({
          id,
          organization_id: admin.organizationId,
          environment_id: tree.environment,
          stage_id,
          kind,
          name: kind,
          icon_uri: 'i',
          spec: '{}',
        })
        .execute();
      const body = { key: 'A', value: 'a', is_secret: false, variable_scope: kind, variable_parent_id: id };
      const created = ok(await admin.post('/variable', body), 201);
      expect(created).toMatchObject({ scope: kind, service_id: id, service_name: kind });
      expect(created.service_type).toBe(kind === 'AGENTIC_WORKFLOW' ? undefined : kind);
      const query = `service_id=${id}&service_type=${kind}`;
      const vars = [{ name: 'B', value: 'b', scope: kind, is_secret: false }];
      const result = ok(await admin.post(`/variable/import?${query}`, { overwrite: false, vars }), 201);
      expect(result.successful_imported_variables).toHaveLength(1);
      expect(
        ok(await admin.get(`/variable?parent_id=${id}&scope=${kind}&is_secret=false&page=1`), 200).results,
      ).not.toEqual([]);
    }
  });

  test('is asked of a parent of the caller: 400 in a body, 404 in a query, alike for foreign and unknown ones', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const tree = await makeTree(admin);
    const body = { key: 'A', value: 'a', is_secret: false };
    for (const parent of [tree.project, newId()]) {
      const answer = await stranger.post('/variable', {
        ...body,
        variable_scope: 'PROJECT',
        variable_parent_id: parent,
      });
      expect(ok(answer, 400).errors[0].field).toBe('variable_parent_id');
      expect((await stranger.get(`/variable?parent_id=${parent}&scope=PROJECT`)).status).toBe(404);
    }
    expect((await admin.get('/variable?scope=PROJECT')).body.errors).toEqual([
      { field: 'parent_id', message: 'is required' },
    ]);
    expect((await admin.get(`/variable?parent_id=${tree.project}&scope=BUILT_IN`)).status).toBe(400);
  });
});

describe('an external secret', () => {
  async function makeAccess(admin: Actor): Promise<string> {
    const cluster = await app.db
      .selectFrom('cluster')
      .select('id')
      .where('organization_id', '=', admin.organizationId)
      .executeTakeFirstOrThrow();
    const id = newId();
    await app.db
      .insertInto('secret_manager_access')
      .values({
        id,
        organization_id: admin.organizationId,
        cluster_id: cluster.id,
        name: 'aws',
        endpoint: '{"mode":"AWS_SECRET_MANAGER","region":"eu-west-3"}',
        authentication: '{"mode":"AUTOMATICALLY_CONFIGURED"}',
      })
      .execute();
    return id;
  }

  test('is no secret of ours: its upstream name is answered, and overrides and aliases of it are of their kind', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const access = await makeAccess(admin);
    const body = { key: 'EXT', value: 'prod/db', secret_manager_access_id: access, ...on(tree, 'ENVIRONMENT') };
    const external = ok(await admin.post('/variable', { ...body, is_secret: true }), 201);
    expect(external).toMatchObject({
      is_secret: false,
      value: 'prod/db',
      variable_type: 'EXTERNAL_SECRET',
      secret_manager_access_id: access,
    });
    const file = ok(await admin.post('/variable', { ...body, key: 'FILE', is_secret: false, mount_path: '/f' }), 201);
    expect(file).toMatchObject({ variable_type: 'FILE_EXTERNAL_SECRET', mount_path: '/f' });
    const path = pathOf(tree, 'application');
    expect(await listed(admin, path, 'EXT')).toMatchObject({ value: 'prod/db', variable_type: 'EXTERNAL_SECRET' });
    const alias = ok(await admin.post(`${path}/${external.id}/alias`, { key: 'ALIAS' }), 201);
    expect(alias).toMatchObject({ value: 'EXT', variable_type: 'ALIAS', aliased_variable: { value: 'prod/db' } });
    const renamed = ok(await admin.put(`/variable/${external.id}`, { key: 'EXT', value: 'prod/db2' }), 200);
    expect(renamed).toMatchObject({ value: 'prod/db2', secret_manager_access_id: access });
  });

  test('through an access that the organization has not is 400, which names the field', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const tree = await makeTree(admin);
    for (const id of [newId(), await makeAccess(stranger)]) {
      const body = { key: 'EXT', value: 'x', is_secret: false, secret_manager_access_id: id, ...on(tree, 'PROJECT') };
      expect(ok(await admin.post('/variable', body), 400).errors[0].field).toBe('secret_manager_access_id');
      const plain = ok(await admin.post(pathOf(tree, 'project'), { key: `P${id.slice(0, 4)}` }), 201);
      const answer = await admin.put(`/variable/${plain.id}`, { key: plain.key, secret_manager_access_id: id });
      expect(ok(answer, 400).errors[0].field).toBe('secret_manager_access_id');
    }
  });

  test('is not made of a secret, an override or an alias, but of a plain variable', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const access = await makeAccess(admin);
    const plain = ok(await admin.post(pathOf(tree, 'project'), { key: 'A', value: 'name' }), 201);
    const secret = ok(await admin.post(pathOf(tree, 'project', 'secret'), { key: 'A' }), 201);
    const alias = ok(await admin.post(`${pathOf(tree, 'project')}/${plain.id}/alias`, { key: 'B' }), 201);
    for (const one of [secret, alias])
      expect((await admin.put(`/variable/${one.id}`, { key: one.key, secret_manager_access_id: access })).status).toBe(
        400,
      );
    expect(
      ok(await admin.put(`/variable/${plain.id}`, { key: 'A', secret_manager_access_id: access }), 200),
    ).toMatchObject({ value: 'name', variable_type: 'EXTERNAL_SECRET' });
  });
});

describe.each(['path', 'variable'] as const)('an import (/%s)', (way) => {
  const urlOf = (tree: Tree) =>
    way === 'path'
      ? `/application/${tree.application}/environmentVariable/import`
      : `/variable/import?service_id=${tree.application}&service_type=APPLICATION`;
  const item = (name: string, value: string, scope = 'APPLICATION', is_secret = false) => ({
    name,
    value,
    scope,
    is_secret,
  });

  test('creates in the scopes that it names, and answers each key by itself', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    ok(await admin.post(pathOf(tree, 'application'), { key: 'TAKEN', value: 'old' }), 201);
    const vars = [
      item('A', 'a'),
      item('E', 'e', 'ENVIRONMENT'),
      item('P', 'p', 'PROJECT', true),
      item('TAKEN', 'new'),
      item('TAKEN', 'secret', 'APPLICATION', true),
      item('bad key', 'x'),
      item('QUARTERDECK_X', 'x'),
      item('BIG', 'x'.repeat(65_537)),
      item('J', 'x', 'JOB'),
      item('B', 'x', 'BUILT_IN'),
      item('A', 'twice'),
    ];
    const result = ok(await admin.post(urlOf(tree), { overwrite: false, vars }), 201);
    expect(result.total_variables_to_import).toBe(11);
    expect(result.successful_imported_variables).toEqual([
      item('A', 'a'),
      item('E', 'e', 'ENVIRONMENT'),
      { name: 'P', scope: 'PROJECT', is_secret: true },
      { name: 'TAKEN', scope: 'APPLICATION', is_secret: true },
    ]);
    expect(
      result.failed_variables.map((one: { name: string; message: string }) => [one.name, one.message.split(':')[0]]),
    ).toEqual([
      ['TAKEN', 'name'],
      ['bad key', 'name'],
      ['QUARTERDECK_X', 'name'],
      ['BIG', 'value'],
      ['J', 'scope'],
      ['B', 'scope'],
      ['A', 'name'],
    ]);
    expect(await listed(admin, pathOf(tree, 'application'), 'TAKEN')).toMatchObject({ value: 'old' });
    expect(await listed(admin, pathOf(tree, 'environment'), 'E')).toMatchObject({ value: 'e', scope: 'ENVIRONMENT' });
    expect(await listed(admin, pathOf(tree, 'project', 'secret'), 'P')).toMatchObject({ scope: 'PROJECT' });
    const events = await app.db
      .selectFrom('audit_event')
      .select(['target_id', 'change'])
      .where('event_type', '=', 'IMPORT')
      .where('organization_id', '=', admin.organizationId)
      .execute();
    expect(events.map((event) => event.target_id).sort()).toEqual(
      [tree.application, tree.environment, tree.project].sort(),
    );
    expect(JSON.stringify(events)).not.toContain('"p"');
  });

  test('with overwrite changes values and nothing else, but not that of an alias', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const path = pathOf(tree, 'application');
    const plain = ok(await admin.post(path, { key: 'V', value: 'old', description: 'kept' }), 201);
    const secret = ok(await admin.post(pathOf(tree, 'application', 'secret'), { key: 'S', value: 'old' }), 201);
    ok(await admin.post(`${path}/${plain.id}/alias`, { key: 'ALIAS' }), 201);
    const vars = [item('V', 'new'), item('S', 'newer', 'APPLICATION', true), item('ALIAS', 'x')];
    const result = ok(await admin.post(urlOf(tree), { overwrite: true, vars }), 201);
    expect(result.successful_imported_variables.map((one: { name: string }) => one.name)).toEqual(['V', 'S']);
    expect(result.failed_variables).toMatchObject([{ name: 'ALIAS', message: expect.stringContaining('alias') }]);
    expect(await listed(admin, path, 'V')).toMatchObject({ id: plain.id, value: 'new', description: 'kept' });
    const same = { overwrite: true, vars: [item('ALIAS', 'V')] };
    expect(ok(await admin.post(urlOf(tree), same), 201).failed_variables).toEqual([]);
    expect(await listed(admin, path, 'ALIAS')).toMatchObject({ value: 'V', aliased_variable: { value: 'new' } });
    const check = ok(
      await admin.post(`${pathOf(tree, 'application', 'secret')}/${secret.id}/alias`, { key: 'S2' }),
      201,
    );
    ok(await admin.put(`/variable/${check.id}`, { key: 'S2', value: 'newer' }), 200);
  });

  test('takes WRITE, a service of the caller, and a body of its form', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const tree = await makeTree(admin);
    const body = { overwrite: false, vars: [item('A', 'a')] };
    expect((await (await admin.withScope('READ')).post(urlOf(tree), body)).status).toBe(403);
    expect((await stranger.post(urlOf(tree), body)).status).toBe(404);
    expect((await admin.post(urlOf(tree), { vars: [{ name: 'A' }] })).status).toBe(400);
    expect(ok(await admin.post(urlOf(tree), { vars: [] }), 201)).toMatchObject({ total_variables_to_import: 0 });
  });
});
