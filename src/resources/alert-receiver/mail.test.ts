import { describe, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { reply, useMailServers } from '#test/harness/mail-server.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.1/32' });
const { start, startScript } = useMailServers();

const SECRET = 'a-secret-password';
const LOGIN = { auth_username: 'alerts', auth_password: SECRET };
const edit = (changes: object = {}) => ({
  name: 'on call',
  description: 'the team',
  type: 'EMAIL',
  send_resolved: true,
  to: 'ops@example.com, dev@example.org',
  from: 'alerts@example.com',
  smarthost: 'smtp.example.com:587',
  auth_username: null,
  require_tls: true,
  ...changes,
});
const bodyOf = ({ organizationId }: Actor, changes: object = {}) => ({
  organization_id: organizationId,
  auth_password: '',
  ...edit(changes),
});
const make = async (admin: Actor, changes: object = {}) =>
  ok(await admin.post('/alert-receivers', bodyOf(admin, changes)), 201);
const rowOf = (id: string) =>
  app.db.selectFrom('alert_receiver').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
const eventsOf = (id: string) =>
  app.db.selectFrom('audit_event').selectAll().where('target_id', '=', id).orderBy('id').execute();

describe('an alert receiver that gets mail', () => {
  test('is stored with an encrypted password, which no answer and no event carries', async () => {
    const admin = await app.organization();
    const created = await make(admin, LOGIN);
    expect(created).toMatchObject({
      type: 'EMAIL',
      to: 'ops@example.com,dev@example.org',
      from: 'alerts@example.com',
      smarthost: 'smtp.example.com:587',
      auth_username: 'alerts',
      require_tls: true,
      delivery_error: null,
    });
    expect(ok(await admin.get(`/alert-receivers/${created.id}`), 200)).toEqual(created);
    const { results } = ok(await admin.get(`/organization/${admin.organizationId}/alert-receivers`), 200);
    expect(results).toEqual([created]);
    const row = await rowOf(created.id);
    expect(row.auth_password!.toString('latin1')).not.toContain(SECRET);
    expect(row.webhook_url).toBeNull();
    await admin.put(`/alert-receivers/${created.id}`, edit({ ...LOGIN, auth_password: `${SECRET}-2` }));
    const events = await eventsOf(created.id);
    expect(events).toMatchObject([{ event_type: 'CREATE' }, { event_type: 'UPDATE' }]);
    expect(events[1]!.change).toMatchObject({ auth_password_replaced: { smarthost: 'smtp.example.com:587' } });
    expect(JSON.stringify([created, results, events])).not.toContain(SECRET);
  });

  test('gets a test message over TLS, with its login', async () => {
    const admin = await app.organization();
    const { port, mails, logins } = await start({ password: SECRET });
    const server = { smarthost: `localhost:${port}`, ...LOGIN };
    const { id } = await make(admin, server);
    ok(await admin.post(`/alert-receivers/${id}/validate`), 200);
    ok(await admin.post(`/alert-receivers/${id}/validate`, { message: 'hello <b>\r\nBcc: evil@example.com' }), 200);
    ok(await admin.post('/alert-receivers/validate', { alert_receiver: bodyOf(admin, server) }), 200);
    expect(logins).toEqual(Array(3).fill({ username: 'alerts', password: SECRET }));
    expect(mails).toHaveLength(3);
    for (const { from, to, secure } of mails)
      expect({ from, to, secure }).toEqual({
        from: 'alerts@example.com',
        to: ['ops@example.com', 'dev@example.org'],
        secure: true,
      });
    expect(mails[0]!.headers.get('subject')).toBe('Test of the alert receiver on call: messages arrive.');
    expect(mails[1]!.headers.has('bcc')).toBe(false);
    expect(new Set(mails.map(({ headers }) => headers.get('message-id'))).size).toBe(3);
  });

  test.each([
    [{ to: undefined }, 'to'],
    [{ to: '' }, 'to'],
    [{ to: 'ops@example.com,' }, 'to'],
    [{ to: 'Ops <ops@example.com>' }, 'to'],
    [{ to: 'ops@example.com\r\nBcc: evil@example.com' }, 'to'],
    [{ to: Array.from({ length: 21 }, (_, index) => `a${index}@example.com`).join(',') }, 'to'],
    [{ from: undefined }, 'from'],
    [{ from: 'a@example.com,b@example.com' }, 'from'],
    [{ from: 'alerts@example.com\nSubject: x' }, 'from'],
    [{ smarthost: undefined }, 'smarthost'],
    [{ smarthost: 'smtp.example.com' }, 'smarthost'],
    [{ smarthost: 'https://smtp.example.com:587' }, 'smarthost'],
    [{ smarthost: '10.0.0.5:587' }, 'smarthost'],
    [{ smarthost: '169.254.169.254:25' }, 'smarthost'],
    [{ smarthost: '1.1.1.1:6379' }, 'smarthost'],
    [{ require_tls: undefined }, 'require_tls'],
    [{ ...LOGIN, require_tls: false }, 'require_tls'],
    [{ auth_password: SECRET }, 'auth_username'],
    [{ auth_username: 'alerts' }, 'auth_password'],
    [{ ...LOGIN, auth_username: 'alerts\r\nX' }, 'auth_username'],
    [{ ...LOGIN, auth_password: 'a\u0001\rb' }, 'auth_password'],
    [{ webhook_url: 'https://hooks.example.com/s' }, 'webhook_url'],
  ])('is refused where it could not be used: %o', async (changes, field) => {
    const admin = await app.organization();
    const refused = ok(await admin.post('/alert-receivers', bodyOf(admin, changes)), 400);
    expect(refused.errors[0].field).toBe(field);
    const tested = await admin.post('/alert-receivers/validate', { alert_receiver: bodyOf(admin, changes) });
    expect(ok(tested, 400).errors[0].field).toBe(`alert_receiver.${field}`);
    expect(JSON.stringify([refused, tested])).not.toContain(SECRET);
    expect(ok(await admin.get(`/organization/${admin.organizationId}/alert-receivers`), 200).results).toEqual([]);
  });

  test('takes a login without require_tls on the port where TLS comes first', async () => {
    const created = await make(await app.organization(), {
      ...LOGIN,
      require_tls: false,
      smarthost: 'smtp.example.com:465',
    });
    expect(created).toMatchObject({ smarthost: 'smtp.example.com:465', require_tls: false });
  });

  test('stays what it is: an edit makes no webhook of it, nor mail of a webhook', async () => {
    const admin = await app.organization();
    const slack = { type: 'SLACK', webhook_url: 'https://hooks.example.com/s' };
    const base = { organization_id: admin.organizationId, name: 'chat', description: '', send_resolved: true };
    const mail = await make(admin);
    const chat = ok(await admin.post('/alert-receivers', { ...base, ...slack }), 201);
    const { organization_id: _organization, ...rest } = base;
    const answers = [
      await admin.put(`/alert-receivers/${mail.id}`, { ...rest, ...slack }),
      await admin.put(`/alert-receivers/${chat.id}`, edit()),
    ];
    for (const answer of answers) expect(ok(answer, 400).errors[0].field).toBe('type');
    expect(ok(await admin.get(`/alert-receivers/${mail.id}`), 200)).toEqual(mail);
    expect(ok(await admin.get(`/alert-receivers/${chat.id}`), 200)).toEqual(chat);
  });
});

describe('an edit of a receiver that gets mail', () => {
  test('keeps a password that it leaves out, and replaces one that it gives', async () => {
    const admin = await app.organization();
    const { port, logins } = await start({ password: SECRET });
    const server = { smarthost: `localhost:${port}` };
    const { id } = await make(admin, { ...server, ...LOGIN });
    const { auth_username: _username, ...withoutLogin } = edit(server);
    const test = async () => (await admin.post(`/alert-receivers/${id}/validate`)).status;
    const edits = [
      edit({ ...server, auth_username: 'alerts' }),
      edit({ ...server, ...LOGIN, auth_password: null }),
      { ...withoutLogin, to: 'other@example.com', name: 'renamed' },
    ];
    for (const body of edits) {
      expect(ok(await admin.put(`/alert-receivers/${id}`, body), 200).auth_username).toBe('alerts');
      expect(await test()).toBe(200);
    }
    ok(await admin.put(`/alert-receivers/${id}`, edit({ ...server, ...LOGIN, auth_password: 'another' })), 200);
    expect(await test()).toBe(502);
    expect(logins.map(({ password }) => password)).toEqual([SECRET, SECRET, SECRET, 'another']);
  });

  test('sends the stored password to no other server and with no other name', async () => {
    const admin = await app.organization();
    const [known, other] = [await start({ password: SECRET }), await start({ password: SECRET })];
    const smarthost = `localhost:${known.port}`;
    const { id } = await make(admin, { smarthost, ...LOGIN });
    const before = await rowOf(id);
    for (const changes of [
      { smarthost: `localhost:${other.port}`, auth_username: 'alerts' },
      { smarthost, auth_username: 'somebody' },
      { smarthost: 'smtp.example.com:587', auth_username: 'alerts', auth_password: null },
    ]) {
      const refused = ok(await admin.put(`/alert-receivers/${id}`, edit(changes)), 400);
      expect(refused.errors[0]).toMatchObject({
        field: 'auth_password',
        message: expect.stringContaining('required again'),
      });
    }
    const open = await admin.put(
      `/alert-receivers/${id}`,
      edit({ smarthost, auth_username: 'alerts', require_tls: false }),
    );
    expect(ok(open, 400).errors[0].field).toBe('require_tls');
    expect(await rowOf(id)).toEqual(before);
    expect(other.logins).toEqual([]);
  });

  test('ends the login with null as its name, and the password is gone', async () => {
    const admin = await app.organization();
    const { id } = await make(admin, LOGIN);
    expect(ok(await admin.put(`/alert-receivers/${id}`, edit()), 200).auth_username).toBeNull();
    expect((await rowOf(id)).auth_password).toBeNull();
    const again = await admin.put(`/alert-receivers/${id}`, edit({ auth_username: 'alerts' }));
    expect(ok(again, 400).errors[0].field).toBe('auth_password');
  });

  test('that changes where mail goes ends its pause, and one that does not leaves it', async () => {
    const admin = await app.organization();
    const { id } = await make(admin, LOGIN);
    const fail = () =>
      sql`update alert_receiver set failures = 12, paused_until = now() + interval '5 minutes', delivery_error = 'no'
        where id = ${id}`.execute(app.db);
    const kept = { auth_username: 'alerts' };
    await fail();
    ok(await admin.put(`/alert-receivers/${id}`, edit({ ...kept, name: 'renamed' })), 200);
    expect(await rowOf(id)).toMatchObject({ failures: 12, delivery_error: 'no' });
    const open = await make(admin);
    await sql`update alert_receiver set failures = 12 where id = ${open.id}`.execute(app.db);
    ok(await admin.put(`/alert-receivers/${open.id}`, edit({ auth_password: '' })), 200);
    expect(await rowOf(open.id)).toMatchObject({ failures: 12 });
    for (const changes of [{ ...kept, to: 'other@example.com' }, LOGIN, { auth_username: null }]) {
      await fail();
      ok(await admin.put(`/alert-receivers/${id}`, edit(changes)), 200);
      expect(await rowOf(id), JSON.stringify(changes)).toMatchObject({
        failures: 0,
        paused_until: null,
        delivery_error: null,
      });
    }
  });

  test('with a new password works where the old one cannot be decrypted', async () => {
    const admin = await app.organization();
    const { id } = await make(admin, LOGIN);
    const sealed = Buffer.from((await rowOf(id)).auth_password!);
    sealed[sealed.length - 1]! ^= 1;
    await app.db.updateTable('alert_receiver').set({ auth_password: sealed }).where('id', '=', id).execute();
    expect((await admin.put(`/alert-receivers/${id}`, edit({ auth_username: 'alerts' }))).status).toBe(500);
    ok(await admin.put(`/alert-receivers/${id}`, edit(LOGIN)), 200);
    ok(await admin.put(`/alert-receivers/${id}`, edit({ auth_username: 'alerts' })), 200);
  });
});

describe('a test message by mail', () => {
  const test502 = async (admin: Actor, port: number, changes: object = {}) => {
    const alert_receiver = bodyOf(admin, { smarthost: `localhost:${port}`, require_tls: false, ...changes });
    return ok(await admin.post('/alert-receivers/validate', { alert_receiver }), 502).message as string;
  };

  test('that a server refuses is told with its answer, also where others got it', async () => {
    const admin = await app.organization();
    const some = await start({
      refuses: (to) => (to === 'dev@example.org' ? reply(550, 'No such user') : undefined),
    });
    expect(await test502(admin, some.port)).toBe(
      `The test message was refused: localhost:${some.port} answered 550 No such user to the recipient dev@example.org.`,
    );
    const locked = await start({ password: 'another' });
    const told = await test502(admin, locked.port, { ...LOGIN, require_tls: true });
    expect(told).toBe(`The test message was refused: localhost:${locked.port} answered 535 5.7.8 to the login.`);
  });

  test('to what is no mail server, or one without TLS, is not sent', async () => {
    const admin = await app.organization();
    const web = await startScript(() => undefined, 'HTTP/1.1 400 Bad Request\r\nx-internal: thing\r\n\r\n');
    expect(await test502(admin, web.port)).toBe(
      `The test message was not sent: localhost:${web.port} answered something that is not SMTP.`,
    );
    const plain = await start({ hideSTARTTLS: true, disabledCommands: ['STARTTLS', 'AUTH'] });
    expect(await test502(admin, plain.port, { require_tls: true })).toContain('offers no TLS');
    expect(plain.begun()).toBe(0);
  });

  test('through a receiver that was stored with other settings goes only where those of today allow it', async () => {
    const admin = await app.organization();
    const { id } = await make(admin);
    for (const [smarthost, reason] of [
      ['10.0.0.5:587', 'private, local or reserved'],
      ['1.1.1.1:6379', 'the port must be 25, 465, 587 or 2525'],
    ] as const) {
      await app.db.updateTable('alert_receiver').set({ smarthost }).where('id', '=', id).execute();
      expect(ok(await admin.post(`/alert-receivers/${id}/validate`), 502).message).toContain(reason);
    }
  });
});
