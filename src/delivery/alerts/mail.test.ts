import { expect, test } from 'vitest';
import { CONTENT, ruleBody, useAlerts } from '#delivery/alerts/alerts.fixture.ts';
import { LONG_PAUSES, pausesOf } from '#delivery/receivers/pauses.fixture.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';
import { HEADERS, reply, useMailServers } from '#test/harness/mail-server.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
useEngine(app);
const { receiver, worker, evaluate, failedApplication, messagesOf } = useAlerts(app);
const { start, startRaw, startScript } = useMailServers();

/** Creates a receiver that gets mail through a server on this machine. */
const mailReceiver = async (admin: Actor, port: number, changes: object = {}): Promise<string> => {
  const made = await admin.post('/alert-receivers', {
    organization_id: admin.organizationId,
    name: 'on call',
    description: '',
    type: 'EMAIL',
    send_resolved: true,
    to: 'ops@example.com,dev@example.org',
    from: 'alerts@example.com',
    smarthost: `localhost:${port}`,
    auth_password: '',
    require_tls: false,
    ...changes,
  });
  return ok(made, 201).id;
};

/** Creates a rule for a receiver, and stores a message of it. */
async function messageTo(admin: Actor, receiverId: string, content: object = {}): Promise<string> {
  const { environment, application } = await makeExample(admin);
  const target = { target_type: 'APPLICATION', target_id: application.id as string };
  const rule = ruleBody(admin, environment.cluster_id, target, [receiverId]);
  const { id } = ok(await admin.post('/alert-rules', rule), 201);
  await storeMessage(admin, id, receiverId, content);
  return id;
}

const storeMessage = (admin: Actor, ruleId: string, receiverId: string, content: object = {}) =>
  sql`insert into alert_message (id, organization_id, rule_id, receiver_id, content) values
    (${newId()}, ${admin.organizationId}, ${ruleId}, ${receiverId},
      ${JSON.stringify({ ...CONTENT, ...content })}::jsonb)`.execute(app.db);

const endOf = (admin: Actor) => expect.poll(async () => (await messagesOf(admin)).map(({ status }) => status));
const deliveryError = async (admin: Actor, id: string): Promise<string | null> =>
  ok(await admin.get(`/alert-receivers/${id}`), 200).delivery_error;

test(
  'an alert and its end are mailed, each to all recipients, with the text that a webhook gets',
  { timeout: 60_000 },
  async () => {
    const { admin, id, clusterId, succeed } = await failedApplication();
    const { port, mails, logins } = await start({ password: 'pass' });
    const login = { auth_username: 'alerts', auth_password: 'pass', require_tls: true };
    const chat = await receiver(admin);
    const receivers = [await mailReceiver(admin, port, login), chat.id];
    const target = { target_type: 'APPLICATION', target_id: id };
    ok(await admin.post('/alert-rules', ruleBody(admin, clusterId, target, receivers)), 201);
    await evaluate();
    worker();
    await expect.poll(() => mails).toHaveLength(1);
    expect(mails[0]!.to).toEqual(['ops@example.com', 'dev@example.org']);
    expect(mails[0]!.headers.get('subject')).toBe('HIGH: deployments');
    expect(mails[0]!.headers.get('auto-submitted')).toBe('auto-generated');
    await succeed();
    await evaluate();
    await expect.poll(() => mails).toHaveLength(2);
    expect(mails[1]!.headers.get('subject')).toBe('Resolved: deployments');
    expect(mails[1]!.headers.get('message-id')).not.toBe(mails[0]!.headers.get('message-id'));
    expect(logins).toHaveLength(2);
    await endOf(admin).toEqual(Array(4).fill('ENDED'));
    expect(mails.map(({ body }) => body.trim().replaceAll('\u2060', '').split('\r\n'))).toEqual(
      chat.texts.map((text) => text.replaceAll('\u2060', '').split('\n')),
    );
  },
);

test.each([451, 550])('a mail that is refused with %i is sent again under the same Message-ID', async (code) => {
  const admin = await app.organization();
  const tried: (string | undefined)[] = [];
  const { port, mails } = await start({
    refusesMail: (number, source) => {
      tried.push(/^message-id: *(.*)$/im.exec(source)?.[1]?.trim());
      return number < 3 ? reply(code, 'Not now') : undefined;
    },
  });
  const id = await mailReceiver(admin, port);
  await messageTo(admin, id);
  worker();
  await endOf(admin).toEqual(['ENDED']);
  expect(mails).toHaveLength(1);
  expect(tried).toHaveLength(3);
  expect(new Set(tried).size).toBe(1);
  expect(tried[0]).toMatch(/^<[0-9a-f-]{36}@example\.com>$/);
  expect(await deliveryError(admin, id)).toBeNull();
});

test('a mail that no call brings to its server is given up, which rule and receiver say', async () => {
  const admin = await app.organization();
  const { port } = await start({ refusesMail: () => reply(554, 'We do not like \u001b[2J you') });
  const id = await mailReceiver(admin, port);
  const ruleId = await messageTo(admin, id);
  worker();
  await endOf(admin).toEqual(['ENDED']);
  const error = (await deliveryError(admin, id))!;
  expect(error).toMatch(/^The receiver answered 554 We do not like .*\. The message was given up after 3 tries\.$/);
  expect(error).not.toMatch(/\p{Cc}/u);
  expect(ok(await admin.get(`/alert-rules/${ruleId}`), 200).problem).toBe(`on call: ${error}`);
});

test('a mail that one of two recipients refused is not sent again, and the refusal is told until one arrives everywhere', async () => {
  const admin = await app.organization();
  let refuses = true;
  const { port, mails } = await start({
    refuses: (to) => (refuses && to === 'dev@example.org' ? reply(550, 'No such user') : undefined),
  });
  const id = await mailReceiver(admin, port);
  await sql`update alert_receiver set failures = 3 where id = ${id}`.execute(app.db);
  const ruleId = await messageTo(admin, id);
  worker();
  await endOf(admin).toEqual(['ENDED']);
  expect(mails.map(({ to }) => to)).toEqual([['ops@example.com']]);
  expect(await deliveryError(admin, id)).toBe(
    'The receiver answered 550 No such user to the recipient dev@example.org; the message arrived at the others.',
  );
  const failures = app.db.selectFrom('alert_receiver').select('failures').where('id', '=', id);
  expect(await failures.executeTakeFirst()).toEqual({ failures: 0 });
  refuses = false;
  await storeMessage(admin, ruleId, id);
  await endOf(admin).toEqual(['ENDED', 'ENDED']);
  expect(mails).toHaveLength(2);
  expect(await deliveryError(admin, id)).toBeNull();
});

test('a mail server that hangs is given up at the deadline, and holds up no other receiver', async () => {
  const admin = await app.organization();
  const { port, open } = await startRaw(() => undefined);
  const id = await mailReceiver(admin, port);
  await messageTo(admin, id);
  const neighbour = await app.organization();
  const quick = await receiver(neighbour);
  worker({ scheduleMs: [] });
  await expect.poll(open).toBe(1);
  await messageTo(neighbour, quick.id);
  await expect.poll(() => quick.texts).toHaveLength(1);
  await endOf(admin).toEqual(['ENDED']);
  expect(await deliveryError(admin, id)).toContain(`localhost:${port} did not answer within`);
  expect(open()).toBe(0);
});

test('a worker that stops in the middle of a mail closes the connection, and another one sends the mail', async () => {
  const admin = await app.organization();
  let hangs = true;
  const server = await startScript((command) => {
    if (command === '.' && hangs) return undefined;
    if (command.startsWith('EHLO')) return '250 mail.test\r\n';
    return command === 'DATA' ? '354 go\r\n' : /^(MAIL|RCPT|\.)/.test(command) ? '250 fine\r\n' : undefined;
  });
  const id = await mailReceiver(admin, server.port);
  await messageTo(admin, id);
  const first = worker({ graceMs: 50 });
  await expect.poll(server.open).toBe(1);
  await first.stop();
  await expect.poll(server.open).toBe(0);
  expect(await messagesOf(admin)).not.toMatchObject([{ status: 'ENDED' }]);
  hangs = false;
  worker();
  await endOf(admin).toEqual(['ENDED']);
  expect(await deliveryError(admin, id)).toBeNull();
});

test('a mail server that fails one mail after the other is left alone for a while', async () => {
  const admin = await app.organization();
  const { port } = await startRaw((socket) => void socket.end('421 too busy\r\n'));
  const id = await mailReceiver(admin, port);
  await messageTo(admin, id);
  const pauses = pausesOf(app.db, 'alert_receiver', id);
  worker({ breaker: LONG_PAUSES, scheduleMs: Array<number>(1000).fill(1) });
  expect((await pauses.begun()).failures).toBeGreaterThanOrEqual(10);
  expect(await deliveryError(admin, id)).toBe('The receiver answered 421 too busy.');
});

test('names that people chose end no header and no line of a mail, and nothing of them is markup', async () => {
  const admin = await app.organization();
  const { port, mails } = await start();
  const evil = 'x\r\nBcc: evil@example.com\r\n\r\n<script>alert(1)</script>\n.\nQUIT\u202e';
  const id = await mailReceiver(admin, port);
  const firing = [{ ...CONTENT.firing[0]!, name: evil, detail: evil }];
  await messageTo(admin, id, { rule: evil.repeat(20), summary: evil, firing });
  worker();
  await endOf(admin).toEqual(['ENDED']);
  expect(mails).toHaveLength(1);
  const [{ headers, to, body }] = mails as [(typeof mails)[0]];
  expect(to).toEqual(['ops@example.com', 'dev@example.org']);
  expect([...headers.keys()].sort()).toEqual(HEADERS);
  expect(headers.get('content-type')).toMatch(/^text\/plain;/);
  expect(body).not.toMatch(/^Bcc:|^QUIT/m);
});
