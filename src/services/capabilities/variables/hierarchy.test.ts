import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { listed, makeTree, messageOf, pathOf } from '#services/capabilities/variables/variables.fixture.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
const SORTS = ['environmentVariable', 'secret'] as const;

/** A tree, a record on its project, and how the sort names what others are of. */
async function prepare(admin: Actor, sort: (typeof SORTS)[number]) {
  const tree = await makeTree(admin);
  const source = ok(await admin.post(pathOf(tree, 'project', sort), { key: 'SRC', value: 'one' }), 201);
  const [project, environment, application] = [
    pathOf(tree, 'project', sort),
    pathOf(tree, 'environment', sort),
    pathOf(tree, 'application', sort),
  ];
  const fields =
    sort === 'secret'
      ? (['overridden_secret', 'aliased_secret'] as const)
      : (['overridden_variable', 'aliased_variable'] as const);
  return { tree, source, project, environment, application, overridden: fields[0], aliased: fields[1] };
}

describe.each(SORTS)('an override of a %s', (sort) => {
  test('stands in a lower scope with the key, the value of its own, and what it is of; it may be of an override', async () => {
    const admin = await app.organization();
    const { source, environment, application, overridden, aliased } = await prepare(admin, sort);
    const override = ok(
      await admin.post(`${environment}/${source.id}/override`, { value: 'two', description: 'd' }),
      201,
    );
    expect(override).toMatchObject({ key: 'SRC', scope: 'ENVIRONMENT', variable_type: 'OVERRIDE', description: 'd' });
    expect(override[aliased]).toBeNull();
    expect(override[overridden]).toEqual({
      id: source.id,
      key: 'SRC',
      ...(sort === 'secret' ? { description: '', enable_interpolation_in_file: false } : { value: 'one' }),
      mount_path: null,
      scope: 'PROJECT',
      variable_type: 'VALUE',
    });
    const second = ok(await admin.post(`${application}/${override.id}/override`, { value: 'three' }), 201);
    expect(second[overridden]).toMatchObject({ id: override.id, variable_type: 'OVERRIDE' });
    if (sort === 'environmentVariable') expect([override.value, second.value]).toEqual(['two', 'three']);
    else expect(JSON.stringify([override, second])).not.toMatch(/two|three/);
  });

  test('in the same scope is 400, from where the source is not seen 404, a second one 409, and without a value 400', async () => {
    const admin = await app.organization();
    const { tree, source, project, environment, application } = await prepare(admin, sort);
    expect(messageOf(await admin.post(`${project}/${source.id}/override`, { value: 'x' }), 400)).toContain(
      'lower scope',
    );
    const below = ok(await admin.post(environment, { key: 'LOW', value: 'x' }), 201);
    expect((await admin.post(`${project}/${below.id}/override`, { value: 'x' })).status).toBe(404);
    const beside = ok(await admin.post(`/application/${tree.sibling}/${sort}`, { key: 'SIDE', value: 'x' }), 201);
    expect((await admin.post(`${application}/${beside.id}/override`, { value: 'x' })).status).toBe(404);
    expect((await admin.post(`${application}/${newId()}/override`, { value: 'x' })).status).toBe(404);
    for (const body of [{}, { value: null }, undefined, { value: 7 }])
      expect((await admin.post(`${application}/${source.id}/override`, body)).status).toBe(400);
    const answers = await Promise.all(
      [1, 2].map(() => admin.post(`${application}/${source.id}/override`, { value: 'x' })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
  });

  test('keeps its key: editing that is 400, and it follows when the source is renamed', async () => {
    const admin = await app.organization();
    const { tree, source, project, environment, application } = await prepare(admin, sort);
    const override = ok(await admin.post(`${environment}/${source.id}/override`, { value: 'two' }), 201);
    const second = ok(await admin.post(`${application}/${override.id}/override`, { value: 'three' }), 201);
    const alias = ok(await admin.post(`${application}/${override.id}/alias`, { key: 'ALIAS' }), 201);
    expect(messageOf(await admin.put(`${environment}/${override.id}`, { key: 'OTHER' }), 400)).toContain(
      'key of an override',
    );
    ok(await admin.put(`${environment}/${override.id}`, { key: 'SRC', value: 'new' }), 200);
    ok(await admin.put(`${project}/${source.id}`, { key: 'RENAMED' }), 200);
    for (const id of [override.id, second.id])
      expect(ok(await admin.get(`${application}/${id}`), 200).key).toBe('RENAMED');
    expect(ok(await admin.get(`${application}/${alias.id}`), 200).key).toBe('ALIAS');
    ok(await admin.post(`/application/${tree.sibling}/${sort}`, { key: 'TAKEN', value: 'x' }), 201);
    ok(await admin.post(`/application/${tree.sibling}/${sort}/${source.id}/override`, { value: 'x' }), 201);
    expect((await admin.put(`${project}/${source.id}`, { key: 'TAKEN' })).status).toBe(409);
    const renames = await app.db
      .selectFrom('audit_event')
      .select('change')
      .where('target_id', '=', tree.application)
      .where('event_type', '=', 'UPDATE')
      .execute();
    expect(renames.map((event) => event.change)).toEqual([expect.objectContaining({ id: second.id, key: 'RENAMED' })]);
  });

  test('has the key of its source, also when that is renamed at the same moment', async () => {
    const admin = await app.organization();
    const { source, project, environment, application } = await prepare(admin, sort);
    for (let round = 0; round < 5; round++) {
      const [renamed, made] = await Promise.all([
        admin.put(`${project}/${source.id}`, { key: `KEY_${round}` }),
        admin.post(`${environment}/${source.id}/override`, { value: 'x' }),
      ]);
      ok(renamed, 200);
      const { id } = ok(made, 201);
      expect(ok(await admin.get(`${application}/${id}`), 200).key).toBe(`KEY_${round}`);
      ok(await admin.delete(`${environment}/${id}`), 204);
    }
  });

  test('is not given its old key back by an edit at the moment of a rename', async () => {
    const admin = await app.organization();
    const { source, project, environment } = await prepare(admin, sort);
    const { id } = ok(await admin.post(`${environment}/${source.id}/override`, { value: 'x' }), 201);
    let key = 'SRC';
    for (let round = 0; round < 8; round++) {
      const next = `KEY_${round}`;
      await Promise.all([
        admin.put(`${environment}/${id}`, { key, value: `${round}` }),
        admin.put(`${project}/${source.id}`, { key: next }),
      ]);
      expect(ok(await admin.get(`${environment}/${id}`), 200).key).toBe(next);
      key = next;
    }
  });

  test('dies with what it is of, which is told in an event of each', async () => {
    const admin = await app.organization();
    const { tree, source, project, environment, application } = await prepare(admin, sort);
    const override = ok(await admin.post(`${environment}/${source.id}/override`, { value: 'two' }), 201);
    const alias = ok(await admin.post(`${application}/${override.id}/alias`, { key: 'ALIAS' }), 201);
    expect((await admin.delete(`${project}/${source.id}`)).status).toBe(204);
    for (const id of [override.id, alias.id]) expect((await admin.get(`${application}/${id}`)).status).toBe(404);
    const gone = await app.db
      .selectFrom('audit_event')
      .select(['target_id', 'target_type', 'original_change'])
      .where('event_type', '=', 'DELETE')
      .where('organization_id', '=', admin.organizationId)
      .execute();
    expect(gone.map((event) => [event.target_id, event.target_type, event.original_change.key]).sort()).toEqual(
      [
        [tree.project, 'PROJECT', 'SRC'],
        [tree.environment, 'ENVIRONMENT', 'SRC'],
        [tree.application, 'APPLICATION', 'ALIAS'],
      ].sort(),
    );
  });
});

describe.each(SORTS)('an alias of a %s', (sort) => {
  test('stands in the same or a lower scope, and answers the key of its source, whose value stands beside', async () => {
    const admin = await app.organization();
    const { source, project, application, overridden, aliased } = await prepare(admin, sort);
    const same = ok(await admin.post(`${project}/${source.id}/alias`, { key: 'SAME' }), 201);
    const alias = ok(await admin.post(`${application}/${source.id}/alias`, { key: 'ALIAS', description: 'd' }), 201);
    expect(same).toMatchObject({ scope: 'PROJECT', variable_type: 'ALIAS' });
    expect(alias).toMatchObject({ key: 'ALIAS', scope: 'APPLICATION', variable_type: 'ALIAS', description: 'd' });
    expect(alias[overridden]).toBeNull();
    expect(alias[aliased]).toMatchObject({ id: source.id, key: 'SRC', scope: 'PROJECT', variable_type: 'VALUE' });
    ok(await admin.put(`${project}/${source.id}`, { key: 'SRC', value: 'changed' }), 200);
    const now = await listed(admin, application, 'ALIAS');
    if (sort === 'environmentVariable') {
      expect(now.value).toBe('SRC');
      expect(now[aliased].value).toBe('changed');
    } else expect(JSON.stringify(now)).not.toContain('changed');
  });

  test('of an alias is 400, from where the source is not seen 404, and with a taken key 409', async () => {
    const admin = await app.organization();
    const { tree, source, environment, application } = await prepare(admin, sort);
    const alias = ok(await admin.post(`${environment}/${source.id}/alias`, { key: 'ALIAS' }), 201);
    expect(messageOf(await admin.post(`${application}/${alias.id}/alias`, { key: 'B' }), 400)).toContain('on an alias');
    const beside = ok(await admin.post(`/application/${tree.sibling}/${sort}`, { key: 'SIDE', value: 'x' }), 201);
    expect((await admin.post(`${application}/${beside.id}/alias`, { key: 'B' })).status).toBe(404);
    expect((await admin.post(`${environment}/${source.id}/alias`, { key: 'ALIAS' })).status).toBe(409);
    for (const body of [{}, { key: 'a b' }, { key: 'QUARTERDECK_B' }])
      expect((await admin.post(`${environment}/${source.id}/alias`, body)).status).toBe(400);
  });

  test('has its key and description edited, but another value is 400; its unchanged one passes', async () => {
    const admin = await app.organization();
    const { source, environment } = await prepare(admin, sort);
    const alias = ok(await admin.post(`${environment}/${source.id}/alias`, { key: 'ALIAS' }), 201);
    const one = `${environment}/${alias.id}`;
    expect(messageOf(await admin.put(one, { key: 'ALIAS', value: 'other' }), 400)).toContain('value of an alias');
    expect((await admin.put(one, { key: 'ALIAS', value: '' })).status).toBe(400);
    for (const value of ['SRC', 'one', null, undefined])
      expect(ok(await admin.put(one, { key: 'RENAMED', value, description: 'd' }), 200)).toMatchObject({
        key: 'RENAMED',
        description: 'd',
        variable_type: 'ALIAS',
      });
  });

  test('may be overridden, and an override may have an alias', async () => {
    const admin = await app.organization();
    const { source, project, environment, application, aliased, overridden } = await prepare(admin, sort);
    const alias = ok(await admin.post(`${project}/${source.id}/alias`, { key: 'ALIAS' }), 201);
    const override = ok(await admin.post(`${environment}/${alias.id}/override`, { value: 'own' }), 201);
    expect(override).toMatchObject({
      key: 'ALIAS',
      variable_type: 'OVERRIDE',
      [overridden]: { id: alias.id, variable_type: 'ALIAS' },
    });
    const second = ok(await admin.post(`${application}/${override.id}/alias`, { key: 'SECOND' }), 201);
    expect(second[aliased]).toMatchObject({ id: override.id, variable_type: 'OVERRIDE' });
    if (sort === 'environmentVariable')
      expect(second).toMatchObject({ value: 'ALIAS', aliased_variable: { value: 'own' } });
  });
});

describe('a built-in variable', () => {
  test('can be overridden and have aliases, but is neither edited nor deleted', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const path = pathOf(tree, 'environment');
    const builtIn = await listed(admin, path, 'QUARTERDECK_PROJECT_ID');
    for (const one of [`${path}/${builtIn.id}`, `/variable/${builtIn.id}`]) {
      expect(messageOf(await admin.put(one, { key: builtIn.key, value: 'x' }), 400)).toContain('cannot be edited');
      expect(messageOf(await admin.delete(one), 400)).toContain('cannot be deleted');
    }
    const override = ok(await admin.post(`${path}/${builtIn.id}/override`, { value: 'mine' }), 201);
    expect(override).toMatchObject({
      key: 'QUARTERDECK_PROJECT_ID',
      value: 'mine',
      variable_type: 'OVERRIDE',
      overridden_variable: { id: builtIn.id, value: tree.project, scope: 'BUILT_IN', variable_type: 'BUILT_IN' },
    });
    ok(await admin.put(`${path}/${override.id}`, { key: override.key, value: 'again' }), 200);
    const alias = ok(await admin.post(`${path}/${builtIn.id}/alias`, { key: 'PROJECT' }), 201);
    expect(alias).toMatchObject({
      value: builtIn.key,
      aliased_variable: { id: builtIn.id, key: builtIn.key, value: tree.project },
    });
    expect((await admin.post(`${pathOf(tree, 'project')}/${builtIn.id}/override`, { value: 'p' })).status).toBe(201);
  });

  test('of a service takes its overrides and aliases along when the service goes', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const path = pathOf(tree, 'application');
    const key = `QUARTERDECK_APPLICATION_Z${tree.sibling.slice(0, 8).toUpperCase()}_HOST_INTERNAL`;
    const builtIn = await listed(admin, path, key);
    ok(await admin.post(`${path}/${builtIn.id}/alias`, { key: 'API' }), 201);
    ok(await admin.post(`${path}/${builtIn.id}/override`, { value: 'localhost' }), 201);
    await app.db.deleteFrom('service').where('id', '=', tree.sibling).execute();
    expect(await listed(admin, path, 'API')).toBeUndefined();
    expect(await listed(admin, path, key)).toBeUndefined();
    expect((await admin.get(`/variable/${builtIn.id}`)).status).toBe(404);
  });

  test('of a database is a secret where it holds the password, and is shown to nobody', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const id = await makeDatabase(admin, tree.environment, 'p4ss/word');
    const prefix = `QUARTERDECK_POSTGRESQL_Z${id.slice(0, 8).toUpperCase()}`;
    const path = pathOf(tree, 'application', 'secret');
    const password = await listed(admin, path, `${prefix}_PASSWORD`);
    expect(password).toMatchObject({
      scope: 'BUILT_IN',
      variable_type: 'BUILT_IN',
      service_id: id,
      service_type: 'DATABASE',
    });
    expect(await listed(admin, pathOf(tree, 'application'), `${prefix}_HOST`)).toMatchObject({
      value: `postgresql-z${id.slice(0, 8)}`,
    });
    expect(messageOf(await admin.put(`${path}/${password.id}`, { key: 'X' }), 400)).toContain(
      'BUILT_IN secret cannot be edited',
    );
    const alias = ok(await admin.post(`${path}/${password.id}/alias`, { key: 'PASSWORD' }), 201);
    expect((await admin.put(`${path}/${alias.id}`, { key: 'PASSWORD', value: 'p4ss/word' })).status).toBe(200);
    expect((await admin.put(`${path}/${alias.id}`, { key: 'PASSWORD', value: 'guess' })).status).toBe(400);
    const everything = ok(await admin.get(`/variable?parent_id=${tree.application}&scope=APPLICATION`), 200);
    expect(JSON.stringify(everything)).not.toMatch(/p4ss/);
  });
});

/** A database as its kind stores it; see built-ins.ts. */
async function makeDatabase(admin: Actor, environmentId: string, password: string): Promise<string> {
  const id = newId();
  const place = `service/${id}/database_password`;
  const sealed = await app.platform.vault.seal(app.db, admin.organizationId, place, password);
  const access = {
    port: 5432,
    external_port: null,
    login: 'root',
    password: sealed.toString('base64'),
    name: 'postgres',
  };
  const stage = await app.db
    .selectFrom('deployment_stage')
    .select('id')
    .where('environment_id', '=', environmentId)
    .executeTakeFirstOrThrow();
  await app.db
    .insertInto('service')
    .values({
      id,
      organization_id: admin.organizationId,
      environment_id: environmentId,
      stage_id: stage.id,
      kind: 'DATABASE',
      name: 'db',
      icon_uri: 'i',
      spec: JSON.stringify({ type: 'POSTGRESQL', access }),
    })
    .execute();
  return id;
}

describe('a file', () => {
  test('gives its path to overrides and aliases, which stay that; another path is 400', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const file = ok(await admin.post(pathOf(tree, 'project'), { key: 'CONF', value: 'x', mount_path: '/c' }), 201);
    const path = pathOf(tree, 'environment');
    const override = ok(await admin.post(`${path}/${file.id}/override`, { value: 'y' }), 201);
    const alias = ok(await admin.post(`${path}/${override.id}/alias`, { key: 'CONF2' }), 201);
    expect([override, alias].map((one) => [one.variable_type, one.mount_path])).toEqual([
      ['OVERRIDE', '/c'],
      ['ALIAS', '/c'],
    ]);
    expect(override.overridden_variable.mount_path).toBe('/c');
    for (const one of [override, alias]) {
      expect((await admin.put(`${path}/${one.id}`, { key: one.key, mount_path: '/d' })).status).toBe(400);
      ok(await admin.put(`${path}/${one.id}`, { key: one.key, mount_path: '/c' }), 200);
    }
    ok(await admin.put(`${pathOf(tree, 'project')}/${file.id}`, { key: 'CONF', mount_path: '/d' }), 200);
    expect((await listed(admin, path, 'CONF2')).mount_path).toBe('/d');
  });
});
