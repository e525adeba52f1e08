import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { sessionsThatWait } from '#test/harness/waiting.ts';

const app = useApp();

describe('a project', () => {
  test('is created with the body of the specification and answered in full', async () => {
    const admin = await app.organization();
    const project = ok(
      await admin.post(`/organization/${admin.organizationId}/project`, { name: ' Shop ', description: 'All of it' }),
      201,
    );
    expect(project).toMatchObject({
      name: 'Shop',
      description: 'All of it',
      associated_environments_count: 0,
      organization: { id: admin.organizationId },
    });
    expect(ok(await admin.get(`/project/${project.id}`), 200)).toEqual(project);
    expect(ok(await admin.get(`/api/v1/project/${project.id}`), 200)).toEqual(project);
  });

  test('keeps its name unique without case, under concurrency too: one 201 and one 409', async () => {
    const admin = await app.organization();
    const answers = await Promise.all(
      ['Shop', 'shop'].map((name) => admin.post(`/organization/${admin.organizationId}/project`, { name })),
    );
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, 409]);
    expect(answers.find((answer) => answer.status === 409)!.body).toMatchObject({
      status: 409,
      error: 'Conflict',
      message: expect.stringContaining('choose another'),
    });
  });

  test('is created although the creation of another one in the organization waits', async () => {
    const admin = await app.organization();
    const create = (name: string) => admin.post(`/organization/${admin.organizationId}/project`, { name });
    const { id: projectId } = ok(await create('first'), 201);
    const waiting = await app.db.transaction().execute(async (db) => {
      await db.updateTable('project').set({ name: 'taken' }).where('id', '=', projectId).execute();
      const taken = create('taken');
      await expect.poll(() => sessionsThatWait(app.db)).toBe(1);
      ok(await create('free'), 201);
      return { taken };
    });
    expect((await waiting.taken).status).toBe(409);
  });

  test('is edited, keeps what is left out, and tells it in an event with before and after', async () => {
    const admin = await app.organization();
    const project = ok(
      await admin.post(`/organization/${admin.organizationId}/project`, { name: 'a', description: 'kept' }),
      201,
    );
    const edited = ok(await admin.put(`/project/${project.id}`, { name: 'b' }), 200);
    expect(edited).toMatchObject({ name: 'b', description: 'kept' });
    const events = await app.db
      .selectFrom('audit_event')
      .selectAll()
      .where('target_id', '=', project.id)
      .orderBy('id')
      .execute();
    expect(events.map((event) => event.event_type)).toEqual(['CREATE', 'UPDATE']);
    expect(events[1]).toMatchObject({
      original_change: { name: 'a' },
      change: { name: 'b' },
      organization_id: admin.organizationId,
    });
  });

  test('is answered by an edit as by a GET: with the number of those environments that the caller may see', async () => {
    const admin = await app.organization();
    const of = `/organization/${admin.organizationId}`;
    const project = ok(await admin.post(`${of}/project`, { name: 'a' }), 201);
    for (const mode of ['PRODUCTION', 'STAGING'])
      ok(await admin.post(`/project/${project.id}/environment`, { name: mode, mode }), 201);
    const opa_policy = `package p
      default allow := false
      allow if input.environment_mode != "PRODUCTION"
      allow if not input.environment_mode`;
    const { token } = ok(await admin.post(`${of}/policyApiToken`, { name: newId(), opa_policy }), 201);
    const limited = app.session(token);
    const edited = await limited.put(`/project/${project.id}`, { name: 'b' });
    expect(ok(edited, 200).associated_environments_count).toBe(1);
    const read = await limited.get(`/project/${project.id}`);
    expect([edited.body, edited.headers.etag]).toEqual([ok(read, 200), read.headers.etag]);
  });

  test('is not there for another organization, nor under a malformed id', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'a' }), 201);
    for (const answer of [
      await stranger.get(`/project/${project.id}`),
      await stranger.put(`/project/${project.id}`, { name: 'x' }),
      await stranger.get(`/organization/${admin.organizationId}/project`),
      await admin.get(`/project/${newId()}`),
      await admin.get('/project/nonsense'),
    ])
      expect(answer).toMatchObject({ status: 404, body: { error: 'Not Found' } });
  });

  test('is refused without a name, with every wrong field named', async () => {
    const admin = await app.organization();
    const answer = await admin.post(`/organization/${admin.organizationId}/project`, { name: '  ', description: 7 });
    expect(answer).toMatchObject({
      status: 400,
      body: { errors: [{ field: 'name' }, { field: 'description', message: 'must be a text' }] },
    });
    expect((await admin.post(`/organization/${admin.organizationId}/project`, {})).body.message).toBe(
      'name: is required',
    );
  });

  test('takes the scope that its action needs', async () => {
    const admin = await app.organization();
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'a' }), 201);
    const reader = await admin.withScope('READ');
    ok(await reader.get(`/project/${project.id}`), 200);
    expect(ok(await reader.put(`/project/${project.id}`, { name: 'b' }), 403).message).toContain('project.edit');
  });
});

describe('every request', () => {
  test('without a valid token is 401, whatever it says', async () => {
    const { organizationId, token } = await app.organization();
    const url = `/organization/${organizationId}/project`;
    for (const authorization of [undefined, 'Token', 'Basic abc', `Token ${token.slice(0, -1)}x`, `Bearer ${token}x`])
      expect(
        (await app.anonymous('POST', url, '{broken', authorization ? { authorization } : {})).status,
        authorization,
      ).toBe(401);
    expect((await app.anonymous('GET', url, undefined, { authorization: `bearer ${token}` })).status).toBe(200);
  });

  test('carries a request id, and errors name what is wrong', async () => {
    const admin = await app.organization();
    const answer = await admin.post(`/organization/${admin.organizationId}/project`, '{broken');
    expect(answer).toMatchObject({ status: 400, body: { status: 400, error: 'Bad Request' } });
    expect(answer.body.detail).toBe(answer.body.message);
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(
      (await admin.post(`/organization/${admin.organizationId}/project`, 'name=x', { 'content-type': 'text/plain' }))
        .status,
    ).toBe(415);
    expect(
      (await admin.post(`/organization/${admin.organizationId}/project`, { name: 'x'.repeat(1 << 20) })).status,
    ).toBe(413);
    expect((await admin.get('/nowhere')).status).toBe(404);
  });

  test('with a NUL anywhere is 400 and names the field, and an escaped backslash before it is none', async () => {
    const admin = await app.organization();
    const url = `/organization/${admin.organizationId}/project`;
    const answer = await admin.post(url, { name: 'a', description: 'x\0y' });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ field: 'description' }] } });
    expect(ok(await admin.post(url, { name: 'a\\u0000' }), 201).name).toBe('a\\u0000');
  });

  test('that is repeated with its Idempotency-Key has one effect and one answer, and another body under it is 409', async () => {
    const admin = await app.organization();
    const url = `/organization/${admin.organizationId}/project`;
    const key = { 'idempotency-key': 'k1' };
    const answers = await Promise.all([1, 2, 3].map(() => admin.post(url, { name: 'once' }, key)));
    expect(new Set(answers.map((answer) => JSON.stringify([answer.status, answer.body]))).size).toBe(1);
    expect(answers[0]!.status).toBe(201);
    expect((await admin.post(url, { name: 'other' }, key)).status).toBe(409);
    expect(ok(await admin.get(url), 200).results).toHaveLength(1);
  });

  test('with If-Match changes only the version that it names', async () => {
    const admin = await app.organization();
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'a' }), 201);
    const { etag } = (await admin.get(`/project/${project.id}`)).headers as { etag: string };
    expect((await admin.get(`/project/${project.id}`, { 'if-none-match': etag })).status).toBe(304);
    const answers = await Promise.all(
      ['b', 'c'].map((name) => admin.put(`/project/${project.id}`, { name }, { 'if-match': etag })),
    );
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 412]);
  });

  test('of a list is paged as asked, and out of range is 400', async () => {
    const admin = await app.organization();
    const url = `/organization/${admin.organizationId}/project`;
    for (const name of ['a', 'b', 'c']) ok(await admin.post(url, { name }), 201);
    expect(ok(await admin.get(url), 200).pagination).toEqual({ page: 1, page_size: 3, total_count: 3, total_pages: 1 });
    const second = ok(await admin.get(`${url}?page=2&page_size=2`), 200);
    expect(second.results.map((project: { name: string }) => project.name)).toEqual(['c']);
    expect(second.pagination).toEqual({ page: 2, page_size: 2, total_count: 3, total_pages: 2 });
    for (const query of ['page=0', 'page_size=101', 'page=x'])
      expect((await admin.get(`${url}?${query}`)).status).toBe(400);
  });
});
