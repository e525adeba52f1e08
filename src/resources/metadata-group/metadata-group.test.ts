import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';

const statements: string[] = [];
const app = useApp({}, {}, (text) => statements.push(text));
const engine = useEngine(app);

const LABEL = { key: 'example.com/team', value: 'shop', propagate_to_cloud_provider: true };
const LABELS = { name: 'team', labels: [LABEL] };
const ANNOTATIONS = { name: 'notes', annotations: [{ key: 'note', value: 'any text, 100 %' }], scopes: ['PODS'] };
const labelsOf = (admin: Actor) => `/organization/${admin.organizationId}/labelsGroups`;
const annotationsOf = (admin: Actor) => `/organization/${admin.organizationId}/annotationsGroups`;
const makeLabels = async (admin: Actor, body: object = {}) =>
  ok(await admin.post(labelsOf(admin), { ...LABELS, ...body }), 201);
const makeAnnotations = async (admin: Actor, body: object = {}) =>
  ok(await admin.post(annotationsOf(admin), { ...ANNOTATIONS, ...body }), 201);
const fieldsOf = (body: { errors: { field: string }[] }) => body.errors.map(({ field }) => field);

describe('a group', () => {
  test.each([
    ['labels', labelsOf, LABELS, { name: 'team 2', labels: [] }],
    ['annotations', annotationsOf, ANNOTATIONS, { name: 'notes 2', annotations: [], scopes: ['HPA', 'HPA', 'JOBS'] }],
  ])('of %s is made, listed, read, edited and deleted', async (kind, urlOf, body, change) => {
    const admin = await app.organization();
    const made = ok(await admin.post(urlOf(admin), { ...body, name: ` ${body.name} ` }), 201);
    expect(made).toMatchObject(body);
    const url = `${urlOf(admin)}/${made.id}`;
    expect(ok(await admin.get(url), 200)).toEqual(made);
    expect(ok(await admin.get(urlOf(admin)), 200).results).toEqual([{ ...made, associated_items_count: 0 }]);
    const edited = ok(await admin.put(url, change), 200);
    expect(edited).toMatchObject({ ...change, ...(kind === 'annotations' ? { scopes: ['HPA', 'JOBS'] } : {}) });
    // Names may repeat.
    ok(await admin.post(urlOf(admin), change), 201);
    expect(ok(await admin.get(`${urlOf(admin)}?page=2&page_size=1`), 200).pagination.total_count).toBe(2);
    ok(await admin.delete(url), 204);
    ok(await admin.get(url), 404);
    const events = await app.db
      .selectFrom('audit_event')
      .selectAll()
      .where('target_id', '=', made.id)
      .orderBy('id')
      .execute();
    expect(events.map((event) => event.event_type)).toEqual(['CREATE', 'UPDATE', 'DELETE']);
  });

  test.each([
    ['key', ''],
    ['key', '-a'],
    ['key', 'a b'],
    ['key', 'a'.repeat(64)],
    ['key', 'Example.com/a'],
    ['key', 'example..com/a'],
    ['key', '/a'],
    ['key', 'example.com/'],
    ['key', 'a/b/c'],
    ['key', `${'a.'.repeat(127)}a/b`],
    ['key', 'quarterdeck.service'],
    ['value', 'a b'],
    ['value', 'a-'],
    ['value', 'a'.repeat(64)],
  ])('of labels is refused where its %s is %j', async (field, wrong) => {
    const admin = await app.organization();
    const body = ok(
      await admin.post(labelsOf(admin), { ...LABELS, labels: [LABEL, { ...LABEL, key: 'b', [field]: wrong }] }),
      400,
    );
    expect(fieldsOf(body)).toEqual([`labels[1].${field}`]);
  });

  test('takes what Kubernetes takes', async () => {
    const admin = await app.organization();
    const keys = ['a', 'A-1_b.c', 'a'.repeat(63), `${'a'.repeat(63)}.${'b'.repeat(63)}/c`, 'app.kubernetes.io/name'];
    await makeLabels(admin, { labels: keys.map((key) => ({ ...LABEL, key, value: '' })) });
    await makeAnnotations(admin, { annotations: keys.map((key) => ({ key, value: '{"any": "text"}\nß' })) });
  });

  test('holds each key once, and annotations of at most 256 KiB', async () => {
    const admin = await app.organization();
    const twice = ok(await admin.post(labelsOf(admin), { ...LABELS, labels: [LABEL, LABEL] }), 400);
    expect(fieldsOf(twice)).toEqual(['labels[1].key']);
    const half = (key: string) => ({ key, value: 'ß'.repeat(70_000) });
    const large = ok(
      await admin.post(annotationsOf(admin), { ...ANNOTATIONS, annotations: [half('a'), half('b')] }),
      400,
    );
    expect(fieldsOf(large)).toEqual(['annotations']);
    const scope = ok(await admin.post(annotationsOf(admin), { ...ANNOTATIONS, scopes: ['NODES'] }), 400);
    expect(fieldsOf(scope)).toEqual(['scopes[0]']);
  });

  test('is not there for another organization, nor under the other kind, and takes WRITE to change', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const { id } = await makeLabels(admin);
    for (const url of [`${labelsOf(admin)}/${id}`, `${labelsOf(other)}/${id}`]) {
      ok(await other.get(url), 404);
      ok(await other.put(url, LABELS), 404);
      ok(await other.delete(url), 404);
      ok(await other.get(`${url}/associatedItems`), 404);
    }
    ok(await admin.get(`${annotationsOf(admin)}/${id}`), 404);
    const [reader, deployer, writer] = [
      await admin.withScope('READ'),
      await admin.withScope('DEPLOY'),
      await admin.withScope('WRITE'),
    ];
    ok(await reader.get(`${labelsOf(admin)}/${id}`), 200);
    ok(await deployer.post(labelsOf(admin), LABELS), 403);
    ok(await deployer.put(`${labelsOf(admin)}/${id}`, LABELS), 403);
    ok(await deployer.delete(`${labelsOf(admin)}/${id}`), 403);
    ok(await writer.put(`${labelsOf(admin)}/${id}`, LABELS), 200);
  });
});

describe('a service that names groups', () => {
  test('answers them with what they hold, in its order, by itself and in lists', async () => {
    const admin = await app.organization();
    const [first, second] = [await makeLabels(admin), await makeLabels(admin, { name: 'second' })];
    const notes = await makeAnnotations(admin);
    const { environment, application } = await makeExample(admin, {
      labels_groups: [{ id: second.id }, { id: first.id }, { id: second.id }],
      annotations_groups: [{ id: notes.id }],
    });
    expect(application).toMatchObject({ labels_groups: [second, first], annotations_groups: [notes] });
    const url = `/application/${application.id}`;
    const renamed = ok(await admin.put(`${labelsOf(admin)}/${first.id}`, { ...LABELS, name: 'renamed' }), 200);
    const seen = ok(await admin.get(url), 200);
    expect(seen.labels_groups).toEqual([second, renamed]);
    expect(ok(await admin.get(`/environment/${environment.id}/application`), 200).results).toEqual([seen]);
    expect(ok(await admin.get(`/environment/${environment.id}/services`), 200).results).toEqual([seen]);
    // What a body leaves out stays; an empty list takes them away.
    expect(ok(await admin.put(url, { name: 'other' }), 200).labels_groups).toHaveLength(2);
    expect(ok(await admin.put(url, { labels_groups: [] }), 200)).toMatchObject({
      labels_groups: [],
      annotations_groups: [notes],
    });
  });

  test('takes no more statements in a list than one does', async () => {
    const admin = await app.organization();
    const group = await makeLabels(admin);
    const { environment } = await makeExample(admin, { labels_groups: [{ id: group.id }] });
    const count = async () => {
      statements.length = 0;
      ok(await admin.get(`/environment/${environment.id}/application`), 200);
      // The engine's loops read services as well, each with columns of its own.
      return statements.filter((text) => text.startsWith('select "service".*, "environment"."name"')).length;
    };
    expect(await count()).toBe(1);
    for (const name of ['a', 'b', 'c'])
      ok(
        await admin.post(
          `/environment/${environment.id}/application`,
          exampleBody({ name, labels_groups: [{ id: group.id }] }),
        ),
        201,
      );
    expect(await count()).toBe(1);
  });

  test('is refused a group that is not its organization’s, or of the other kind', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const [own, foreign, notes] = [await makeLabels(admin), await makeLabels(other), await makeAnnotations(admin)];
    const { application } = await makeExample(admin);
    for (const id of [foreign.id, notes.id, newId()]) {
      const body = { labels_groups: [{ id: own.id }, { id }] };
      expect(fieldsOf(ok(await admin.put(`/application/${application.id}`, body), 400))).toEqual([
        'labels_groups[1].id',
      ]);
    }
    const body = { annotations_groups: [{ id: own.id }] };
    expect(fieldsOf(ok(await admin.put(`/application/${application.id}`, body), 400))).toEqual([
      'annotations_groups[0].id',
    ]);
  });

  test('is deployed with their content, and is OUT_OF_DATE once it has changed', async () => {
    const admin = await app.organization();
    const team = await makeLabels(admin);
    const stronger = await makeLabels(admin, {
      labels: [
        { ...LABEL, value: 'wins' },
        { ...LABEL, key: 'b' },
      ],
    });
    const notes = await makeAnnotations(admin);
    const { application } = await makeExample(admin, {
      labels_groups: [{ id: team.id }, { id: stronger.id }],
      annotations_groups: [{ id: notes.id }],
    });
    const url = `/application/${application.id}`;
    const statusOf = async () => ok(await admin.get(`${url}/status`), 200).service_deployment_status;
    ok(await admin.post(`${url}/deploy?wait=40`, {}), 200);
    expect(engine.runtime.specOf(application.id)).toMatchObject({
      labels: { 'example.com/team': 'wins', b: 'shop' },
      annotations: [{ scopes: ['PODS'], values: { note: 'any text, 100 %' } }],
    });
    expect(await statusOf()).toBe('UP_TO_DATE');
    ok(await admin.put(`${labelsOf(admin)}/${team.id}`, { ...LABELS, name: 'another name' }), 200);
    expect(await statusOf()).toBe('UP_TO_DATE');
    ok(await admin.put(`${annotationsOf(admin)}/${notes.id}`, { ...ANNOTATIONS, scopes: ['INGRESS'] }), 200);
    expect(await statusOf()).toBe('OUT_OF_DATE');
    ok(await admin.post(`${url}/deploy?wait=40`, {}), 200);
    expect(await statusOf()).toBe('UP_TO_DATE');
    expect(engine.runtime.specOf(application.id)!.annotations).toMatchObject([{ scopes: ['INGRESS'] }]);
  });

  test('keeps a group from being deleted, and is told by it', async () => {
    const admin = await app.organization();
    const [team, notes] = [await makeLabels(admin), await makeAnnotations(admin)];
    const { project, environment, application } = await makeExample(admin, {
      labels_groups: [{ id: team.id }],
      annotations_groups: [{ id: notes.id }],
    });
    const item = {
      cluster_id: environment.cluster_id,
      cluster_name: environment.cluster_name,
      project_id: project.id,
      project_name: project.name,
      environment_id: environment.id,
      environment_name: 'e',
      item_id: application.id,
      item_name: 'hello',
      item_type: 'APPLICATION',
    };
    for (const [url, group] of [
      [labelsOf(admin), team],
      [annotationsOf(admin), notes],
    ] as const) {
      expect(ok(await admin.get(`${url}/${group.id}/associatedItems`), 200).results).toEqual([item]);
      const [listed] = ok(await admin.get(url), 200).results;
      expect(listed).toEqual({ ...group, associated_items_count: 1 });
      ok(await admin.delete(`${url}/${group.id}`), 409);
    }
    ok(await admin.put(`/application/${application.id}`, { labels_groups: [], annotations_groups: [] }), 200);
    ok(await admin.delete(`${labelsOf(admin)}/${team.id}`), 204);
    ok(await admin.delete(`${annotationsOf(admin)}/${notes.id}`), 204);
  });

  test('never names a group that is gone, whoever of the two comes first', async () => {
    const admin = await app.organization();
    const { environment } = await makeExample(admin);
    for (let round = 0; round < 5; round++) {
      const { id } = await makeLabels(admin);
      const body = exampleBody({ name: `n ${newId()}`, labels_groups: [{ id }] });
      const [made, deleted] = await Promise.all([
        admin.post(`/environment/${environment.id}/application`, body),
        admin.delete(`${labelsOf(admin)}/${id}`),
      ]);
      expect([
        [201, 409],
        [400, 204],
      ]).toContainEqual([made.status, deleted.status]);
    }
  });

  test('hides from an associated item’s list what the caller’s role has no access to', async () => {
    const admin = await app.organization();
    const team = await makeLabels(admin);
    const { project } = await makeExample(admin, { labels_groups: [{ id: team.id }] });
    const role = ok(await admin.post(`/organization/${admin.organizationId}/customRole`, { name: 'outside' }), 201);
    const permissions = ['DEVELOPMENT', 'PREVIEW', 'STAGING', 'PRODUCTION'].map((environment_type) => ({
      environment_type,
      permission: 'NO_ACCESS',
    }));
    ok(
      await admin.put(`/organization/${admin.organizationId}/customRole/${role.id}`, {
        name: 'outside',
        project_permissions: [{ project_id: project.id, is_admin: false, permissions }],
        cluster_permissions: [],
      }),
      200,
    );
    const token = ok(
      await admin.post(`/organization/${admin.organizationId}/apiToken`, { name: 't', role_id: role.id }),
      201,
    );
    const url = `${labelsOf(admin)}/${team.id}/associatedItems`;
    const seen = await app.anonymous('GET', url, undefined, { authorization: `Token ${token.token}` });
    expect(ok(seen, 200).results).toEqual([]);
  });
});

test('a cluster names groups of labels, is told by them and is OUT_OF_DATE once one has changed', async () => {
  const [admin, other] = [await app.organization(), await app.organization()];
  const [team, foreign, notes] = [await makeLabels(admin), await makeLabels(other), await makeAnnotations(admin)];
  const url = `/organization/${admin.organizationId}/cluster`;
  const body = (id: string) => ({
    name: `c ${newId()}`,
    region: 'here',
    cloud_provider: 'ON_PREMISE',
    runtime: 'fake',
    labels_groups: [{ id }],
  });
  for (const { id } of [foreign, notes])
    expect(fieldsOf(ok(await admin.post(url, body(id)), 400))).toEqual(['labels_groups']);
  const cluster = ok(await admin.post(url, body(team.id)), 201);
  expect(cluster.labels_groups).toEqual([{ id: team.id }]);
  expect(ok(await admin.get(`${labelsOf(admin)}/${team.id}/associatedItems`), 200).results).toEqual([
    {
      cluster_id: cluster.id,
      cluster_name: cluster.name,
      item_id: cluster.id,
      item_name: cluster.name,
      item_type: 'CLUSTER',
    },
  ]);
  expect(ok(await admin.get(labelsOf(admin)), 200).results[0].associated_items_count).toBe(1);
  ok(await admin.delete(`${labelsOf(admin)}/${team.id}`), 409);
  const versionOf = async () =>
    (await app.db.selectFrom('cluster').select('version').where('id', '=', cluster.id).executeTakeFirstOrThrow())
      .version;
  const before = await versionOf();
  ok(await admin.put(`${labelsOf(admin)}/${team.id}`, { name: 'team', labels: [] }), 200);
  expect(await versionOf()).toBe(before + 1);
});
