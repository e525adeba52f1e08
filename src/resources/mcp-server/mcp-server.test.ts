import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { findMcpServer, requireMcpServers } from '#resources/mcp-server/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

const urlOf = (admin: Actor) => `/organization/${admin.organizationId}/mcpServer`;
const SECRET = 'Bearer very-secret-0123456789';
const BODY = {
  name: 'tools',
  description: 'd',
  url: 'https://mcp.example.com/mcp',
  headers: { Authorization: SECRET, 'X-Team': 'a' },
};

const opened = (admin: Actor, id: string) => findMcpServer(app.context, admin, id);

describe('an MCP server', () => {
  test('keeps its headers encrypted, and answers their names only', async () => {
    const admin = await app.organization();
    const answer = await admin.post(urlOf(admin), BODY);
    const made = ok(answer, 201);
    expect(made).toEqual({
      id: made.id,
      created_at: made.created_at,
      updated_at: made.updated_at,
      name: 'tools',
      description: 'd',
      url: BODY.url,
      header_names: ['Authorization', 'X-Team'],
    });
    expect(await opened(admin, made.id)).toEqual({
      id: made.id,
      name: 'tools',
      description: 'd',
      url: BODY.url,
      headers: BODY.headers,
    });
    const row = await app.db.selectFrom('mcp_server').selectAll().where('id', '=', made.id).executeTakeFirstOrThrow();
    const events = await app.db.selectFrom('audit_event').selectAll().where('target_id', '=', made.id).execute();
    expect(events).toHaveLength(1);
    expect(JSON.stringify([answer.body, (await admin.get(urlOf(admin))).body, events])).not.toContain('very-secret');
    expect(row.headers!.includes('very-secret')).toBe(false);
    expect(ok(await admin.get(`/mcpServer/${made.id}`), 200)).toEqual(made);
    expect(ok(await admin.get(urlOf(admin)), 200)).toMatchObject({ results: [made], pagination: { total_count: 1 } });
  });

  test('needs only a name and an address', async () => {
    const admin = await app.organization();
    const made = ok(await admin.post(urlOf(admin), { name: ' bare ', url: 'https://mcp.example.com' }), 201);
    expect(made).toMatchObject({ name: 'bare', description: '', header_names: [] });
    expect((await opened(admin, made.id))!.headers).toEqual({});
  });

  test('keeps the headers that an edit leaves out, takes new ones, and loses them to an empty object', async () => {
    const admin = await app.organization();
    const { id } = ok(await admin.post(urlOf(admin), BODY), 201);
    const edit = (change: object) => admin.put(`/mcpServer/${id}`, { name: 'tools', url: BODY.url, ...change });
    expect(ok(await edit({ name: 'Tools 2', url: 'https://mcp.example.com/v2' }), 200)).toMatchObject({
      name: 'Tools 2',
      description: 'd',
      url: 'https://mcp.example.com/v2',
      header_names: ['Authorization', 'X-Team'],
    });
    expect((await opened(admin, id))!.headers).toEqual(BODY.headers);
    expect(ok(await edit({ headers: { 'x-key': 'k' } }), 200).header_names).toEqual(['x-key']);
    expect((await opened(admin, id))!.headers).toEqual({ 'x-key': 'k' });
    expect(ok(await edit({ headers: {} }), 200).header_names).toEqual([]);
    expect((await opened(admin, id))!.headers).toEqual({});
  });

  test('does not take its headers along to another server', async () => {
    const admin = await app.organization();
    const { id } = ok(await admin.post(urlOf(admin), BODY), 201);
    const edit = (url: string, headers?: object) => admin.put(`/mcpServer/${id}`, { name: 'tools', url, headers });
    for (const url of ['https://attacker.example/mcp', 'https://mcp.example.com:444/mcp'])
      expect(ok(await edit(url), 400).errors[0].field).toBe('headers');
    expect((await opened(admin, id))!.url).toBe(BODY.url);
    ok(await edit('https://other.example/mcp', { Authorization: 'new' }), 200);
  });

  test.each([
    ['name', { name: ' ' }],
    ['url', { url: 'http://mcp.example.com' }],
    ['url', { url: 'https://' }],
    ['url', { url: 'https://169.254.169.254/latest' }],
    ['url', { url: 'https://user:password@mcp.example.com' }],
    ['headers.Host', { headers: { Host: 'x' } }],
    ['headers.a b', { headers: { 'a b': 'x' } }],
    ['headers.X-A', { headers: { 'X-A': 'a\r\nX-B: b' } }],
    ['headers.x-a', { headers: { 'X-A': 'a', 'x-a': 'b' } }],
    ['headers.X-A', { headers: { 'X-A': 1 } }],
  ])('is refused for a wrong %s: %j', async (field, wrong) => {
    const admin = await app.organization();
    const fields = ok(await admin.post(urlOf(admin), { ...BODY, ...wrong }), 400).errors.map((one: any) => one.field);
    expect(fields).toEqual([field]);
  });

  test('has a name of its own in the organization, whatever its case, in a race too', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const statuses = (await Promise.all([1, 2, 3].map(() => admin.post(urlOf(admin), BODY)))).map((one) => one.status);
    expect(statuses.sort()).toEqual([201, 409, 409]);
    ok(await admin.post(urlOf(admin), { ...BODY, name: 'TOOLS' }), 409);
    const second = ok(await admin.post(urlOf(admin), { ...BODY, name: 'second' }), 201);
    ok(await admin.put(`/mcpServer/${second.id}`, { ...BODY, name: 'Tools' }), 409);
    ok(await admin.put(`/mcpServer/${second.id}`, { ...BODY, name: 'SECOND' }), 200);
    ok(await other.post(urlOf(other), BODY), 201);
  });

  test('that an agentic workflow names stays until it is taken out there', async () => {
    const admin = await app.organization();
    const { id } = ok(await admin.post(urlOf(admin), BODY), 201);
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
    const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
    const [application] = [
      ok(
        await admin.post(`/environment/${environment.id}/application`, {
          name: 'agent',
          git_repository: { url: 'https://github.com/o/r.git', branch: 'main' },
        }),
        201,
      ),
    ];
    const use = (ids: string[]) =>
      app.db
        .updateTable('service')
        .set({ kind: 'AGENTIC_WORKFLOW', spec: JSON.stringify({ mcp_server_ids: ids }) })
        .where('id', '=', application.id)
        .execute();
    await use([newId(), id]);
    expect(ok(await admin.delete(`/mcpServer/${id}`), 409).message).toContain('agent');
    await use([newId()]);
    ok(await admin.delete(`/mcpServer/${id}`), 204);
    ok(await admin.get(`/mcpServer/${id}`), 404);
    expect(await opened(admin, id)).toBeUndefined();
  });

  test('is required by others only where it is: 400 names the place of one that is not', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const [mine, theirs] = [
      ok(await admin.post(urlOf(admin), BODY), 201),
      ok(await other.post(urlOf(other), BODY), 201),
    ];
    await requireMcpServers(app.context, admin, [mine.id, mine.id]);
    for (const id of [theirs.id, newId()])
      await expect(requireMcpServers(app.context, admin, [mine.id, id])).rejects.toMatchObject({
        errors: [{ field: 'mcp_server_ids[1]' }],
      });
    expect(await opened(other, mine.id)).toBeUndefined();
  });

  test('is changed by administrators only, and is not there for another organization', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const { id } = ok(await admin.post(urlOf(admin), BODY), 201);
    const writer = await admin.withScope('WRITE');
    ok(await writer.get(`/mcpServer/${id}`), 200);
    ok(await writer.post(urlOf(admin), BODY), 403);
    ok(await writer.put(`/mcpServer/${id}`, BODY), 403);
    ok(await writer.delete(`/mcpServer/${id}`), 403);
    ok(await other.get(urlOf(admin)), 404);
    ok(await other.get(`/mcpServer/${id}`), 404);
    ok(await other.put(`/mcpServer/${id}`, BODY), 404);
    ok(await other.delete(`/mcpServer/${id}`), 404);
  });
});
