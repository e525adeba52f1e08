import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

async function makeApplication(admin: Actor) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201);
  const body = { name: 'web', git_repository: { url: 'https://github.com/acme/shop.git' } };
  return ok(await admin.post(`/environment/${environment.id}/application`, body), 201);
}

describe('a deployment restriction', () => {
  test('is created, listed, edited and removed; events tell it and the version of the service stays', async () => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    const url = `/application/${id}/deploymentRestriction`;
    const created = ok(await admin.post(url, { mode: 'MATCH', type: 'PATH', value: '/api//src/' }), 201);
    expect(created).toMatchObject({ mode: 'MATCH', type: 'PATH', value: 'api/src' });
    expect(ok(await admin.get(url), 200).results).toEqual([created]);
    const edited = ok(await admin.put(`${url}/${created.id}`, { mode: 'EXCLUDE', type: 'PATH', value: 'docs' }), 200);
    expect(edited).toMatchObject({ id: created.id, mode: 'EXCLUDE', value: 'docs' });
    expect((await admin.delete(`${url}/${created.id}`)).status).toBe(204);
    expect(ok(await admin.get(url), 200).results).toEqual([]);
    const service = await app.db.selectFrom('service').select('version').where('id', '=', id).executeTakeFirst();
    expect(service!.version).toBe(1);
    const events = await app.db
      .selectFrom('audit_event')
      .select('event_type')
      .where('target_id', '=', id)
      .where('sub_target_type', '=', 'CONFIG')
      .orderBy('id')
      .execute();
    expect(events.map((event) => event.event_type)).toEqual(['CREATE', 'UPDATE', 'DELETE']);
  });

  test('stands once on a service, however its path is spelt', async () => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    const url = `/application/${id}/deploymentRestriction`;
    ok(await admin.post(url, { mode: 'MATCH', type: 'PATH', value: 'api' }), 201);
    expect((await admin.post(url, { mode: 'MATCH', type: 'PATH', value: '/api/' })).status).toBe(409);
    const other = ok(await admin.post(url, { mode: 'EXCLUDE', type: 'PATH', value: 'api' }), 201);
    expect((await admin.put(`${url}/${other.id}`, { mode: 'MATCH', type: 'PATH', value: './api' })).status).toBe(409);
  });

  test.each([
    ['mode', { mode: 'SOMETIMES', type: 'PATH', value: 'a' }],
    ['type', { mode: 'MATCH', type: 'BRANCH', value: 'a' }],
    ['value', { mode: 'MATCH', type: 'PATH', value: '../secrets' }],
    ['value', { mode: 'MATCH', type: 'PATH', value: '' }],
    ['value', { mode: 'MATCH', type: 'PATH' }],
  ])('with a wrong %s is refused', async (field, body) => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    expect(await admin.post(`/application/${id}/deploymentRestriction`, body)).toMatchObject({
      status: 400,
      body: { errors: [{ field }] },
    });
  });

  test('is changed by nobody of another organization, by no reader, nor through another service', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const [mine, other] = [await makeApplication(admin), await makeApplication(admin)];
    const body = { mode: 'MATCH', type: 'PATH', value: 'api' };
    const { id } = ok(await admin.post(`/application/${mine.id}/deploymentRestriction`, body), 201);
    const one = `/application/${mine.id}/deploymentRestriction/${id}`;
    expect((await stranger.delete(one)).status).toBe(404);
    expect((await (await admin.withScope('DEPLOY')).put(one, body)).status).toBe(403);
    expect((await admin.put(`/application/${other.id}/deploymentRestriction/${id}`, body)).status).toBe(404);
    const { etag } = (await admin.put(one, body)).headers as { etag: string };
    expect((await admin.put(one, body, { 'if-match': '"other"' })).status).toBe(412);
    expect((await admin.put(one, body, { 'if-match': etag })).status).toBe(200);
  });
});
