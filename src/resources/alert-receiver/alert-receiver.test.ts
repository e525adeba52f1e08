import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.1/32' });

const received: { path: string; body: unknown }[] = [];
const server = createServer(async (request, response) => {
  received.push({ path: request.url!, body: JSON.parse(await text(request)) });
  response.writeHead(request.url === '/refuses' ? 403 : 200).end();
});
let origin: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

const bodyOf = ({ organizationId }: Actor, changes: object = {}) => ({
  organization_id: organizationId,
  name: 'on call',
  description: 'the team',
  type: 'SLACK',
  send_resolved: true,
  webhook_url: `${origin}/secret-path`,
  ...changes,
});
const { organization_id: _organization, ...EDIT } = bodyOf({ organizationId: '' } as Actor);

describe('an alert receiver', () => {
  test('is stored with an encrypted URL, which no answer and no event carries', async () => {
    const admin = await app.organization();
    const created = ok(await admin.post('/alert-receivers', bodyOf(admin, { owner: 'ops' })), 201);
    expect(created).toMatchObject({
      name: 'on call',
      type: 'SLACK',
      send_resolved: true,
      owner: 'ops',
      severity: null,
    });
    expect(ok(await admin.get(`/alert-receivers/${created.id}`), 200)).toEqual(created);
    expect(ok(await admin.get(`/organization/${admin.organizationId}/alert-receivers`), 200).results).toEqual([
      created,
    ]);
    const row = await app.db
      .selectFrom('alert_receiver')
      .selectAll()
      .where('id', '=', created.id)
      .executeTakeFirstOrThrow();
    expect(row.webhook_url!.toString('latin1')).not.toContain('secret-path');
    const events = await app.db.selectFrom('audit_event').selectAll().where('target_id', '=', created.id).execute();
    expect(events).toMatchObject([{ event_type: 'CREATE', sub_target_type: 'ALERT_RECEIVER' }]);
    expect(JSON.stringify([created, events])).not.toContain('secret-path');
  });

  test('keeps its URL and owner through an edit that leaves them out, and is gone once deleted', async () => {
    const admin = await app.organization();
    const { id } = ok(await admin.post('/alert-receivers', bodyOf(admin, { owner: 'ops' })), 201);
    const url = `/alert-receivers/${id}`;
    const { webhook_url: _url, ...rest } = EDIT;
    expect(ok(await admin.put(url, { ...rest, name: 'renamed' }), 200)).toMatchObject({
      name: 'renamed',
      owner: 'ops',
    });
    expect(ok(await admin.put(url, { ...rest, owner: null }), 200).owner).toBeNull();
    received.length = 0;
    ok(await admin.post(`${url}/validate`, { message: 'hello' }), 200);
    expect(received).toEqual([{ path: '/secret-path', body: { text: 'hello' } }]);
    ok(await admin.put(url, { ...rest, webhook_url: `${origin}/other` }), 200);
    ok(await admin.post(`${url}/validate`), 200);
    expect(received.at(-1)).toEqual({ path: '/other', body: { text: expect.stringContaining('on call') } });
    expect((await admin.delete(url)).status).toBe(204);
    expect((await admin.get(url)).status).toBe(404);
  });

  test('is changed and tested by administrators of its organization only', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const { id } = ok(await admin.post('/alert-receivers', bodyOf(admin)), 201);
    const url = `/alert-receivers/${id}`;
    const writer = await admin.withScope('WRITE');
    received.length = 0;
    const calls: ['post' | 'put' | 'delete', string, unknown][] = [
      ['post', '/alert-receivers', bodyOf(admin)],
      ['post', '/alert-receivers/validate', { alert_receiver: bodyOf(admin) }],
      ['post', `${url}/validate`, {}],
      ['put', url, EDIT],
    ];
    for (const [method, path, body] of calls) {
      expect((await writer[method](path, body as never)).status, path).toBe(403);
      expect((await stranger[method](path, body as never)).status, path).toBe(path.startsWith(url) ? 404 : 400);
    }
    expect((await writer.delete(url)).status).toBe(403);
    expect((await stranger.delete(url)).status).toBe(404);
    expect((await stranger.get(url)).status).toBe(404);
    ok(await writer.get(url), 200);
    expect(received).toEqual([]);
  });

  test.each([
    [{ require_tls: true }, 'require_tls'],
    [{ webhook_url: undefined }, 'webhook_url'],
    [{ webhook_url: 'http://169.254.169.254/latest' }, 'webhook_url'],
    [{ webhook_url: 'file:///etc/passwd' }, 'webhook_url'],
    [{ webhook_url: 'http://hooks.example.com/secret-path' }, 'webhook_url'],
    [{ webhook_url: 'https://user:password@hooks.example.com/' }, 'webhook_url'],
    [{ organization_id: newId() }, 'organization_id'],
  ])('is refused where it could not be called: %o', async (changes, field) => {
    const admin = await app.organization();
    const answer = await admin.post('/alert-receivers', bodyOf(admin, changes));
    expect(ok(answer, 400).errors[0].field).toBe(field);
    const tested = await admin.post('/alert-receivers/validate', { alert_receiver: bodyOf(admin, changes) });
    expect(ok(tested, 400).errors[0].field).toBe(`alert_receiver.${field}`);
    expect(ok(await admin.get(`/organization/${admin.organizationId}/alert-receivers`), 200).results).toEqual([]);
  });

  test.each([' ', 'on\ncall'])('is refused with a name that no line shows whole: %j', async (name) => {
    const admin = await app.organization();
    const refused = ok(await admin.post('/alert-receivers', bodyOf(admin, { name })), 400);
    expect(refused.errors[0].field).toBe('name');
  });

  test('gets nothing over http but in the networks of the operator, even where an earlier release has stored it so', async () => {
    const admin = await app.organization();
    const { id } = ok(await admin.post('/alert-receivers', bodyOf(admin)), 201);
    const edited = await admin.put(`/alert-receivers/${id}`, { ...EDIT, webhook_url: 'http://hooks.example.com/s' });
    expect(ok(edited, 400).errors[0]).toMatchObject({
      field: 'webhook_url',
      message: expect.stringContaining('https://'),
    });
    const sealed = await app.platform.vault.seal(
      app.db,
      admin.organizationId,
      `alert_receiver/${id}/webhook_url`,
      'http://203.0.114.1/secret-path',
    );
    await app.db.updateTable('alert_receiver').set({ webhook_url: sealed }).where('id', '=', id).execute();
    const { message } = ok(await admin.post(`/alert-receivers/${id}/validate`), 502);
    expect(message).toContain('use https');
    expect(message).not.toContain('secret-path');
  });

  test('that gets another URL says so in its event, without the URL', async () => {
    const admin = await app.organization();
    const { id } = ok(await admin.post('/alert-receivers', bodyOf(admin)), 201);
    const { webhook_url: _url, ...rest } = EDIT;
    ok(await admin.put(`/alert-receivers/${id}`, rest), 200);
    ok(await admin.put(`/alert-receivers/${id}`, { ...rest, webhook_url: `${origin}/other-secret` }), 200);
    const told = await app.db
      .selectFrom('audit_event')
      .select('change')
      .where('target_id', '=', id)
      .where('event_type', '=', 'UPDATE')
      .orderBy('id')
      .execute();
    const host = new URL(origin).host;
    expect(told).toHaveLength(2);
    expect(told[0]!.change).not.toHaveProperty('webhook_url_replaced');
    expect(told[1]!.change).toMatchObject({ webhook_url_replaced: { host } });
    expect(JSON.stringify(told)).not.toContain('other-secret');
  });

  test('that is not stored is tested, and its refusal told', async () => {
    const admin = await app.organization();
    const test = (path: string) =>
      admin.post('/alert-receivers/validate', { alert_receiver: bodyOf(admin, { webhook_url: `${origin}${path}` }) });
    ok(await test('/accepts'), 200);
    expect(ok(await test('/refuses'), 502).message).toContain('answered 403');
    expect(ok(await admin.get(`/organization/${admin.organizationId}/alert-receivers`), 200).results).toEqual([]);
  });

  test('is one of at most 100 in an organization, however many are made at once', async () => {
    const admin = await app.organization();
    const { id } = ok(await admin.post('/alert-receivers', bodyOf(admin)), 201);
    const row = await app.db.selectFrom('alert_receiver').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    const more = Array.from({ length: 98 }, () => ({ ...row, id: newId() }));
    await app.db.insertInto('alert_receiver').values(more).execute();
    const answers = await Promise.all([1, 2, 3].map(() => admin.post('/alert-receivers', bodyOf(admin))));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
  });
});
