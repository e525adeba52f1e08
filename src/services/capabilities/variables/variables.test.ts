import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import {
  LEVELS,
  listed,
  makeTree,
  messageOf,
  pathOf,
  type Level,
  type Tree,
} from '#services/capabilities/variables/variables.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();
const SORTS = ['environmentVariable', 'secret'] as const;
const SCOPES = { project: 'PROJECT', environment: 'ENVIRONMENT', application: 'APPLICATION' };
const TABLES = { project: 'project', environment: 'environment', application: 'service' } as const;

const versionOf = async (tree: Tree, level: Level) =>
  (await app.db.selectFrom(TABLES[level]).select('version').where('id', '=', tree[level]).executeTakeFirstOrThrow())
    .version;

const eventsOf = (tree: Tree, level: Level) =>
  app.db
    .selectFrom('audit_event')
    .selectAll()
    .where('target_id', '=', tree[level])
    .where('sub_target_type', 'is not', null)
    .orderBy('id')
    .execute();

describe.each(LEVELS)('on %s', (level) => {
  test.each(SORTS)('a %s is created, edited and deleted; each moves the holder and is told under it', async (sort) => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const path = pathOf(tree, level, sort);
    const version = await versionOf(tree, level);
    const created = ok(await admin.post(path, { key: 'URL', value: 'one' }), 201);
    expect(created).toEqual({
      id: created.id,
      created_at: created.created_at,
      updated_at: created.updated_at,
      key: 'URL',
      ...(sort === 'secret' ? {} : { value: 'one' }),
      mount_path: null,
      enable_interpolation_in_file: false,
      ...(sort === 'secret'
        ? { overridden_secret: null, aliased_secret: null }
        : { overridden_variable: null, aliased_variable: null }),
      scope: SCOPES[level],
      variable_type: 'VALUE',
      ...(level === 'application'
        ? { service_id: tree.application, service_name: 'web', service_type: 'APPLICATION' }
        : {}),
      owned_by: 'QOVERY',
    });
    expect(await listed(admin, path, 'URL')).toEqual(created);
    expect(ok(await admin.get(`${path}/${created.id}`), 200)).toEqual(created);
    const edited = ok(await admin.put(`${path}/${created.id}`, { key: 'URI', value: 'two', description: 'd' }), 200);
    expect(edited).toMatchObject({ id: created.id, key: 'URI', description: 'd' });
    expect((await admin.delete(`${path}/${created.id}`)).status).toBe(204);
    expect(await listed(admin, path, 'URI')).toBeUndefined();
    expect((await admin.delete(`${path}/${created.id}`)).status).toBe(404);
    expect(await versionOf(tree, level)).toBe(version + 3);
    const events = await eventsOf(tree, level);
    expect(events.map((event) => [event.event_type, event.target_type, event.sub_target_type])).toEqual(
      ['CREATE', 'UPDATE', 'DELETE'].map((type) => [type, SCOPES[level], sort === 'secret' ? 'SECRET' : 'VARIABLE']),
    );
    expect(events[1]).toMatchObject({ original_change: { key: 'URL' }, change: { key: 'URI' } });
    expect(events[1]!.change.value).toBe(sort === 'secret' ? null : 'two');
    expect(events[0]).toMatchObject({
      project_id: tree.project,
      environment_id: level === 'project' ? null : tree.environment,
    });
  });

  test.each(SORTS)('of two who create the same %s at the same time one gets it', async (sort) => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const path = pathOf(tree, level, sort);
    const answers = await Promise.all([1, 2, 3].map(() => admin.post(path, { key: 'ONE', value: 'x' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    expect(answers.find(({ status }) => status === 409)!.body.message).toContain('"ONE" is taken');
    const other = ok(await admin.post(path, { key: 'TWO' }), 201);
    expect((await admin.put(`${path}/${other.id}`, { key: 'ONE' })).status).toBe(409);
  });

  test('a variable and a secret of one key stand side by side, and keys differ by case', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    for (const sort of SORTS)
      for (const key of ['KEY', 'key']) ok(await admin.post(pathOf(tree, level, sort), { key, value: key }), 201);
    expect((await listed(admin, pathOf(tree, level), 'key')).value).toBe('key');
  });

  test('an id of the other sort, of another holder and of nothing is 404', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const [tree, other] = [await makeTree(admin), await makeTree(admin)];
    const { id } = ok(await admin.post(pathOf(tree, level), { key: 'A', value: 'a' }), 201);
    for (const path of [pathOf(tree, level, 'secret'), pathOf(other, level)])
      for (const answer of [
        await admin.get(`${path}/${id}`),
        await admin.put(`${path}/${id}`, { key: 'B' }),
        await admin.delete(`${path}/${id}`),
        await admin.post(`${path}/${id}/alias`, { key: 'B' }),
        await admin.post(`${path}/${id}/override`, { value: 'b' }),
        await admin.get(`${pathOf(tree, level)}/${newId()}`),
        await stranger.get(`${pathOf(tree, level)}/${id}`),
        await stranger.get(`/variable/${id}`),
        await stranger.delete(`/variable/${id}`),
      ])
        expect(answer.status).toBe(404);
  });

  test('what is inherited is seen, but changed only where it stands', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const { id } = ok(await admin.post(pathOf(tree, level), { key: 'A', value: 'a' }), 201);
    for (const below of LEVELS.slice(LEVELS.indexOf(level) + 1)) {
      const one = `${pathOf(tree, below)}/${id}`;
      expect(ok(await admin.get(one), 200).value).toBe('a');
      expect((await admin.put(one, { key: 'A', value: 'b' })).status).toBe(404);
      expect((await admin.delete(one)).status).toBe(404);
    }
    expect(ok(await admin.get(`${pathOf(tree, level)}/${id}`), 200).value).toBe('a');
  });

  test('reading takes READ and writing WRITE', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const [reader, writer] = [await admin.withScope('READ'), await admin.withScope('WRITE')];
    const body = { key: 'A', value: 'a' };
    const main = { ...body, is_secret: false, variable_scope: SCOPES[level], variable_parent_id: tree[level] };
    expect(messageOf(await reader.post(pathOf(tree, level), body), 403)).toContain('variable.edit');
    expect(messageOf(await reader.post('/variable', main), 403)).toContain('variable.edit');
    const { id } = ok(await writer.post('/variable', main), 201);
    ok(await reader.get(`${pathOf(tree, level)}/${id}`), 200);
    ok(await reader.get(`/variable?parent_id=${tree[level]}&scope=${SCOPES[level]}`), 200);
    expect((await reader.put(`/variable/${id}`, body)).status).toBe(403);
    const target = { override_scope: 'APPLICATION', override_parent_id: tree.application, value: 'x' };
    expect((await reader.post(`/variable/${id}/override`, target)).status).toBe(403);
  });
});

describe('what a variable may be', () => {
  test.each<[string, string, object]>([
    ['begins with a digit', 'key', { key: '1A', value: '' }],
    ['has a dash', 'key', { key: 'A-B', value: '' }],
    ['has a letter beyond ASCII', 'key', { key: 'Ä', value: '' }],
    ['is empty', 'key', { key: '', value: '' }],
    ['has 256 characters', 'key', { key: 'K'.repeat(256), value: '' }],
    ['has the prefix of built-ins', 'key', { key: 'QUARTERDECK_X', value: '' }],
    ['is missing', 'key', { value: 'x' }],
    ['has 65,537 characters', 'value', { key: 'A', value: 'x'.repeat(65_537) }],
    ['has 65,538 bytes', 'value', { key: 'A', value: 'ä'.repeat(32_769) }],
    ['has a NUL', 'value', { key: 'A', value: 'a\0b' }],
    ['is a number', 'value', { key: 'A', value: 7 }],
    ['has 256 characters', 'description', { key: 'A', value: '', description: 'x'.repeat(256) }],
    ['has a NUL', 'description', { key: 'A', value: '', description: '\0' }],
    ['is relative', 'mount_path', { key: 'A', value: '', mount_path: 'etc/x' }],
    ['leaves its folder', 'mount_path', { key: 'A', value: '', mount_path: '/etc/../x' }],
    ['is a folder', 'mount_path', { key: 'A', value: '', mount_path: '/etc/' }],
    ['is empty', 'mount_path', { key: 'A', value: '', mount_path: '' }],
  ])('what %s is 400, which names the field: %s', async (_what, field, body) => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    for (const sort of SORTS) {
      const answer = await admin.post(pathOf(tree, 'project', sort), body);
      expect(answer).toMatchObject({ status: 400, body: { errors: [{ field }] } });
      expect(answer.body.message).not.toContain('exist');
    }
  });

  test('the longest key, value and description fit', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const body = { key: 'K'.repeat(255), value: 'ä'.repeat(32_768), description: 'x'.repeat(255) };
    for (const sort of SORTS)
      expect(ok(await admin.post(pathOf(tree, 'project', sort), body), 201)).toMatchObject({ key: body.key });
  });

  test('PUT keeps what is absent or null, and its answer is what GET says', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const path = pathOf(tree, 'environment');
    const file = { key: 'CONF', value: 'v', mount_path: '/c', description: 'd', enable_interpolation_in_file: true };
    const created = ok(await admin.post(path, file), 201);
    expect(created).toMatchObject({ ...file, variable_type: 'FILE' });
    const kept = ok(await admin.put(`${path}/${created.id}`, { key: 'CONF', value: null, mount_path: null }), 200);
    expect(kept).toEqual({ ...created, updated_at: kept.updated_at });
    const moved = ok(
      await admin.put(`${path}/${created.id}`, { key: 'CONF', mount_path: '/d', description: null }),
      200,
    );
    expect(moved).toMatchObject({ mount_path: '/d', value: 'v' });
    expect(moved).not.toHaveProperty('description');
  });

  test('If-Match changes only the version that it names', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const { id } = ok(await admin.post(pathOf(tree, 'project'), { key: 'A', value: 'a' }), 201);
    for (const one of [`${pathOf(tree, 'project')}/${id}`, `/variable/${id}`]) {
      const { etag } = (await admin.get(one)).headers as { etag: string };
      const answers = await Promise.all(
        ['b', 'c'].map((value) => admin.put(one, { key: 'A', value: `${value}${one}` }, { 'if-match': etag })),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 412]);
    }
  });

  test('nothing is written on what is being deleted, but deleting goes on', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const path = pathOf(tree, 'application');
    const { id } = ok(await admin.post(path, { key: 'A', value: 'a' }), 201);
    const above = ok(await admin.post(pathOf(tree, 'project'), { key: 'B', value: 'b' }), 201);
    await app.db.updateTable('service').set({ deleting: true }).where('id', '=', tree.application).execute();
    for (const answer of [
      await admin.post(path, { key: 'C' }),
      await admin.put(`${path}/${id}`, { key: 'A' }),
      await admin.post(`${path}/${above.id}/alias`, { key: 'C' }),
      await admin.post(`${path}/${above.id}/override`, { value: 'c' }),
      await admin.post(`${path}/import`, { overwrite: true, vars: [] }),
    ])
      expect(answer.status).toBe(409);
    expect((await admin.delete(`${path}/${id}`)).status).toBe(204);
  });
});

describe('a list', () => {
  test('has the inherited and built-in records too, the overridden ones included, in creation order', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const first = ok(await admin.post(pathOf(tree, 'project'), { key: 'A', value: 'p' }), 201);
    ok(await admin.post(`${pathOf(tree, 'environment')}/${first.id}/override`, { value: 'e' }), 201);
    ok(await admin.post(pathOf(tree, 'application'), { key: 'A', value: 'a' }), 201);
    ok(await admin.post(`/application/${tree.sibling}/environmentVariable`, { key: 'A', value: 's' }), 201);
    const seen = async (level: Level) =>
      ok(await admin.get(pathOf(tree, level)), 200)
        .results.filter((one: { scope: string }) => one.scope !== 'BUILT_IN')
        .map((one: { scope: string; value: string }) => `${one.scope} ${one.value}`);
    expect(await seen('project')).toEqual(['PROJECT p']);
    expect(await seen('environment')).toEqual(['PROJECT p', 'ENVIRONMENT e']);
    expect(await seen('application')).toEqual(['PROJECT p', 'ENVIRONMENT e', 'APPLICATION a']);
    const whole = ok(await admin.get(pathOf(tree, 'application')), 200);
    const page = ok(await admin.get(`${pathOf(tree, 'application')}?page=2&page_size=2`), 200);
    expect(page.results).toEqual(whole.results.slice(2, 4));
    expect(page.pagination).toMatchObject({ page: 2, page_size: 2, total_count: whole.results.length });
  });

  test('has built-ins of the project, the environment and its services', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const short = tree.sibling.slice(0, 8);
    const key = `QUARTERDECK_APPLICATION_Z${short.toUpperCase()}_HOST_INTERNAL`;
    const builtIns = ok(await admin.get(pathOf(tree, 'application')), 200).results;
    const { proxyDomain } = app.platform.settings;
    expect(
      Object.fromEntries(builtIns.map((one: { key: string; value: string }) => [one.key, one.value])),
    ).toMatchObject({
      QUARTERDECK_PROJECT_ID: tree.project,
      QUARTERDECK_ENVIRONMENT_ID: tree.environment,
      [key]: `app-z${short}`,
      [key.replace('INTERNAL', 'EXTERNAL')]: `app-z${short}.${proxyDomain}`,
    });
    const one = builtIns.find((record: { key: string }) => record.key === key);
    expect(one).toMatchObject({
      scope: 'BUILT_IN',
      variable_type: 'BUILT_IN',
      service_id: tree.sibling,
      service_name: 'api',
      service_type: 'APPLICATION',
    });
    expect(one.created_at).toBe(ok(await admin.get(`/application/${tree.sibling}`), 200).created_at);
    expect(await listed(admin, pathOf(tree, 'environment'), key)).toEqual(one);
    expect(await listed(admin, pathOf(tree, 'project'), key)).toBeUndefined();
    expect(await listed(admin, pathOf(tree, 'project'), 'QUARTERDECK_PROJECT_ID')).toMatchObject({ scope: 'BUILT_IN' });
    expect(ok(await admin.get(`/variable/${one.id}`), 200)).toMatchObject({ key, is_secret: false });
  });
});
