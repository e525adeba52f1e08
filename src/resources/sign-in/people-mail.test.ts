import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { readMailServer } from '#platform/mail-queue/server.ts';
import { readSettings } from '#platform/settings/index.ts';
import { createPeopleMail, endAllSignIns, removeOldSignIns, setAddress } from '#resources/sign-in/index.ts';
import { makeLink } from '#resources/sign-in/links.ts';
import { ok, useApp, type Actor, type Caller } from '#test/harness/app.ts';
import { startIssuer } from '#test/harness/issuer.ts';
import { reply, useMailServers } from '#test/harness/mail-server.ts';

const lines: string[] = [];
const app = useApp(
  { QUARTERDECK_TRUSTED_PROXIES: '127.0.0.1/32', QUARTERDECK_LOG_LEVEL: 'trace' },
  {},
  undefined,
  (line) => lines.push(line),
);
const { start, startRaw } = useMailServers();

const PASSWORD = 'correct horse battery';
const FROM = 'quarterdeck@example.com';
const fragmentOf = (url: string): string => new URL(url).hash.slice(1);

const loops: ReturnType<typeof createPeopleMail> = [];
afterEach(async () => {
  await Promise.all(loops.splice(0).map((loop) => loop.stop()));
  Object.assign(app.platform.settings, {
    smtpUrl: '',
    smtpFrom: '',
    smtpPasswordFile: '',
    oidcIssuer: '',
    passwords: 'auto',
  });
  await app.db.deleteFrom('mail').execute();
});

/** Names a mail server in the settings, as the operator does. */
const use = (port: number, login = '') =>
  Object.assign(app.platform.settings, { smtpUrl: `smtp://${login}localhost:${port}`, smtpFrom: FROM });

/** Starts a worker that sends what waits. */
function worker(times: NonNullable<Parameters<typeof createPeopleMail>[2]> = {}) {
  const made = createPeopleMail(app.platform, newId(), { pollMs: 20, scheduleMs: [10, 10], ...times });
  loops.push(...made);
  for (const loop of made) loop.start();
}

const hex = () => Math.floor(Math.random() * 0xffff).toString(16);
const visitor = (address = `2001:db8:${hex()}:${hex()}::1`) => ({
  post: (url: string, body: unknown) => app.anonymous('POST', url, body, { 'x-forwarded-for': address }),
});
const recover = (email: string, from = visitor()) => from.post('/signIn/recovery', { email });
const redeem = async (secret: string, name = `n${newId()}`, password = PASSWORD) =>
  ok(await visitor().post('/signIn/link/redeem', { secret, name, password }), 201);

const sessionOf = async (admin: Actor): Promise<Caller> =>
  app.session((await redeem(fragmentOf((await makeLink(app.context, admin.userId)).url))).token);

const invite = async (sender: Caller, { organizationId }: Actor, email: string) =>
  ok(await sender.post(`/organization/${organizationId}/inviteMember`, { email, role: 'DEVELOPER' }), 201);

const addressOf = () => `${newId()}@people.example`;
const linkIn = (text: string, prefix: string): string => new RegExp(`#(${prefix}_\\S+)`).exec(text)![1]!;
const isIdle = () => expect.poll(async () => (await mailsOf()).filter(({ status }) => status !== 'ENDED')).toEqual([]);
const mailsOf = () => app.db.selectFrom('mail').selectAll().orderBy('created_at').execute();

/** Makes a member by a mailed invitation: their address is theirs. */
async function mailed(admin: Actor) {
  const { port, mails } = await start();
  use(port);
  worker();
  const email = addressOf();
  await invite(await sessionOf(admin), admin, email);
  await expect.poll(() => mails).toHaveLength(1);
  const name = `n${newId()}`;
  const secret = linkIn(mails[0]!.body, 'qm');
  const { token, user_id: userId } = await redeem(secret, name);
  return { email, name, secret, mails, session: app.session(token), userId: userId as string };
}

const eventsOf = async (admin: Actor, userId: string): Promise<{ change: string }[]> =>
  ok(await admin.get(`/organization/${admin.organizationId}/events?targetId=${userId}`), 200).events;

describe('an invitation', () => {
  test('is mailed with a link of its own, by which the invited person chooses name and password', async () => {
    const admin = await app.organization('Acme');
    const { port, mails } = await start();
    use(port);
    worker();
    const email = addressOf();
    const { invitation_link } = await invite(await sessionOf(admin), admin, email);
    await expect.poll(() => mails).toHaveLength(1);
    const [mail] = mails;
    expect(mail).toMatchObject({ from: FROM, to: [email], secure: true });
    expect(mail!.headers.get('subject')).toBe('Invitation to Acme');
    expect(mail!.body).toContain('First Administrator invites you to the organization Acme on Quarterdeck, as devops.');
    const secret = linkIn(mail!.body, 'qm');
    expect(secret.slice(-43)).not.toBe(fragmentOf(invitation_link).slice(-43));
    const seen = ok(await visitor().post('/signIn/link', { secret }), 200);
    expect(seen).toMatchObject({ purpose: 'INVITATION', email, mailed: true });
    await redeem(secret);
    ok(await visitor().post('/signIn/link', { secret: fragmentOf(invitation_link) }), 404);
    ok(await visitor().post('/signIn/link', { secret }), 404);
  });

  test('is mailed again until the server takes it, and its secret is neither stored nor logged', async () => {
    const admin = await app.organization();
    const { port, mails } = await start({
      refusesMail: (number) => (number < 3 ? reply(451, 'Not now') : undefined),
    });
    use(port);
    const email = addressOf();
    await invite(await sessionOf(admin), admin, email);
    const [waiting] = await mailsOf();
    expect(waiting).toMatchObject({ kind: 'INVITATION', recipient: email, status: 'WAITING' });
    lines.length = 0;
    worker();
    await expect.poll(() => mails).toHaveLength(1);
    await isIdle();
    const secret = linkIn(mails[0]!.body, 'qm').slice(-43);
    const rows = [await mailsOf(), await app.db.selectFrom('member_invitation').selectAll().execute()];
    expect(JSON.stringify([waiting, rows])).not.toContain(secret);
    expect(lines.filter((line) => line.includes('a mail to a person could not be sent'))).toHaveLength(2);
    expect(lines.join('\n')).not.toContain(secret);
    // Its address is forgotten once it has arrived.
    expect(await mailsOf()).toMatchObject([{ status: 'ENDED', error: null, recipient: '' }]);
  });

  test('is not mailed once it was withdrawn, and a mailed link ends with the password of its sender', async () => {
    const admin = await app.organization();
    const { port, mails } = await start();
    use(port);
    const session = await sessionOf(admin);
    const withdrawn = await invite(session, admin, addressOf());
    ok(await admin.delete(`/organization/${admin.organizationId}/inviteMember/${withdrawn.id}`), 204);
    await invite(session, admin, addressOf());
    worker();
    await expect.poll(() => mails).toHaveLength(1);
    await isIdle();
    expect(mails).toHaveLength(1);
    const body = { current_password: PASSWORD, password: 'another horse battery' };
    ok(await session.put('/account/password', body), 204);
    ok(await visitor().post('/signIn/link', { secret: linkIn(mails[0]!.body, 'qm') }), 404);
  });

  test('of an API token is not mailed, as its link could be used by nobody', async () => {
    const admin = await app.organization();
    use((await start()).port);
    await invite(admin, admin, addressOf());
    expect(await mailsOf()).toEqual([]);
  });

  test('names the identity provider where people have an account there', async () => {
    const issuer = await startIssuer();
    try {
      const admin = await app.organization();
      const { port, mails } = await start();
      use(port);
      app.platform.settings.oidcIssuer = issuer.url;
      worker();
      const { id } = await invite(admin, admin, addressOf());
      await expect.poll(() => mails).toHaveLength(1);
      expect(mails[0]!.body).toContain(`Sign in at ${issuer.url} with the address`);
      expect(mails[0]!.body).toContain(`inviteToken=${id}`);
      expect(mails[0]!.body).not.toContain('#');
    } finally {
      await issuer.close();
    }
  });

  test('is given up after the last try, which the work report tells', async () => {
    const admin = await app.organization();
    const { port } = await start({ refusesMail: () => reply(554, 'We do not like you') });
    use(port);
    worker();
    await invite(await sessionOf(admin), admin, addressOf());
    await expect.poll(async () => (await mailsOf()).map(({ status }) => status)).toEqual(['ENDED']);
    const error = (await mailsOf())[0]!.error!;
    expect(error).toMatch(/^localhost:\d+ answered 554 We do not like you\. The mail was given up after 3 tries\.$/);
  });

  test('is refused with 429 once the organization has sent 200 mails within a day', async () => {
    const admin = await app.organization();
    use((await start()).port);
    const session = await sessionOf(admin);
    const mails = Array.from({ length: 200 }, () => ({
      id: newId(),
      kind: 'INVITATION',
      subject_id: null,
      recipient: '',
      sender_id: admin.organizationId,
      status: 'ENDED',
    }));
    await app.db.insertInto('mail').values(mails).execute();
    const url = `/organization/${admin.organizationId}/inviteMember`;
    expect(ok(await session.post(url, { email: addressOf() }), 429).message).toContain('200 mails within 24 hours');
    expect(ok(await admin.get(url), 200).results).toEqual([]);
  });
});

describe('a forgotten password', () => {
  test('is replaced by a mailed link, once, which ends all sessions and is told to the organization', async () => {
    const admin = await app.organization();
    const { email, name, mails, session, userId } = await mailed(admin);
    ok(await recover(email.toUpperCase()), 204);
    await expect.poll(() => mails).toHaveLength(2);
    const [, mail] = mails;
    expect(mail!.to).toEqual([email]);
    expect(mail!.body).toContain(`for the account ${name}.`);
    const secret = linkIn(mail!.body, 'qr');
    ok(await session.get('/account'), 200);
    const seen = ok(await visitor().post('/signIn/link', { secret }), 200);
    expect(seen).toMatchObject({ purpose: 'PASSWORD', name });
    expect(Date.parse(seen.expires_at) - Date.now()).toBeLessThanOrEqual(3600_000);
    await redeem(secret, name, 'another horse battery');
    ok(await session.get('/account'), 401);
    ok(await visitor().post('/signIn/link/redeem', { secret, name, password: PASSWORD }), 404);
    ok(await visitor().post('/signIn', { name, password: PASSWORD }), 401);
    ok(await visitor().post('/signIn', { name, password: 'another horse battery' }), 201);
    const changes = (await eventsOf(admin, userId)).map(({ change }) => change).join();
    expect(changes).toContain('a link for a forgotten password was mailed');
    expect(changes).toContain('set by a one-time link');
  });

  test('is answered alike whether the address is known or not, and nothing is sent to an unknown one', async () => {
    const { email, mails } = await mailed(await app.organization());
    const [known, unknown] = [await recover(email), await recover(addressOf())];
    expect(unknown).toMatchObject({ status: known.status, body: known.body });
    await expect.poll(() => mails).toHaveLength(2);
    await isIdle();
    expect(mails).toHaveLength(2);
  });

  test('gets the same link again, so that others who ask end none; it is over after one hour', async () => {
    const { email, name, mails } = await mailed(await app.organization());
    for (const count of [2, 3]) {
      ok(await recover(email), 204);
      await expect.poll(() => mails).toHaveLength(count);
    }
    const secret = linkIn(mails[1]!.body, 'qr');
    expect(linkIn(mails[2]!.body, 'qr')).toBe(secret);
    await app.db.updateTable('recovery_link').set({ expires_at: new Date() }).execute();
    ok(await visitor().post('/signIn/link/redeem', { secret, name, password: PASSWORD }), 404);
    await removeOldSignIns(app.platform);
    expect(await app.db.selectFrom('recovery_link').select('id').execute()).toEqual([]);
    ok(await recover(email), 204);
    await expect.poll(() => mails).toHaveLength(4);
    expect(linkIn(mails[3]!.body, 'qr')).not.toBe(secret);
  });

  test('is mailed only so often: 429 for the address, and for who asks', async () => {
    use((await start()).port);
    const email = addressOf();
    for (let times = 0; times < 4; times++) ok(await recover(email), 204);
    const refused = await recover(email);
    expect(ok(refused, 429).message).toMatch(/^Too many links were asked for: try again in \d+ s\.$/);
    const from = visitor();
    for (let times = 0; times < 20; times++) ok(await recover(addressOf(), from), 204);
    ok(await recover(addressOf(), from), 429);
    ok(await recover(addressOf()), 204);
  });

  test('has no link for an account whose address the operator removed, and none after a restore', async () => {
    const { email, mails, userId } = await mailed(await app.organization());
    ok(await recover(email), 204);
    await expect.poll(() => mails).toHaveLength(2);
    const secret = linkIn(mails[1]!.body, 'qr');
    expect(await setAddress(app.context, userId, null)).toBe(true);
    ok(await visitor().post('/signIn/link', { secret }), 404);
    const other = addressOf();
    expect(await setAddress(app.context, userId, other)).toBe(true);
    for (const one of [email, other]) ok(await recover(one), 204);
    await expect.poll(() => mails).toHaveLength(3);
    expect(mails[2]!.to).toEqual([other]);
    await endAllSignIns(app.db);
    ok(await visitor().post('/signIn/link', { secret: linkIn(mails[2]!.body, 'qr') }), 404);
    expect(await mailsOf()).toEqual([]);
  });

  test('asks for an address that mail can be sent to', async () => {
    use((await start()).port);
    for (const email of ['ada', '"a b"@example.com', 'ada@example.com\r\nBcc: eve@example.com'])
      expect(ok(await recover(email), 400).message).toContain('email');
  });

  test('is for the operator where no mail is sent, which the page says instead of offering it', async () => {
    expect(ok(await recover(addressOf()), 403).message).toContain('QUARTERDECK_SMTP_URL');
    expect(String((await app.anonymous('GET', '/sign-in')).body)).toContain('data-mail="false"');
    const admin = await app.organization();
    await invite(await sessionOf(admin), admin, addressOf());
    expect(await mailsOf()).toEqual([]);
    expect(createPeopleMail(app.platform, newId())).toEqual([]);
  });
});

describe('the link that the inviter sees', () => {
  test('gives the account no address', async () => {
    const admin = await app.organization();
    const { port, mails } = await start();
    use(port);
    const email = addressOf();
    const { invitation_link } = await invite(await sessionOf(admin), admin, email);
    await redeem(fragmentOf(invitation_link));
    worker();
    ok(await recover(email), 204);
    await isIdle();
    expect(mails).toEqual([]);
  });
});

describe('the server of the settings', () => {
  const base = { QUARTERDECK_SMTP_FROM: FROM };
  const wrong = (given: Record<string, string>) => () => readSettings({ ...base, ...given });

  test('gets mail over TLS only, unless it is on this machine', async () => {
    const of = (url: string) => readMailServer({ ...app.platform.settings, smtpUrl: url });
    expect(await of('smtp://smtp.example.com')).toMatchObject({ port: 587, requireTls: true, login: null });
    expect(await of('smtps://smtp.example.com')).toMatchObject({ port: 465, isTls: true, requireTls: true });
    expect(await of('smtp://10.0.0.1:25')).toMatchObject({ port: 25, requireTls: true });
    for (const host of ['localhost', '127.0.0.1', '[::1]'])
      expect(await of(`smtp://${host}:25`)).toMatchObject({ requireTls: false });
  });

  test('gets the password of the file as it is then; without one the mail waits, and the error names the file', async () => {
    const admin = await app.organization();
    const { port, mails, logins } = await start({ password: 'from a file' });
    const file = path.join(app.platform.settings.dataDir, 'smtp-password');
    Object.assign(use(port, 'mailer@'), { smtpPasswordFile: file });
    worker({ scheduleMs: Array.from({ length: 1000 }, () => 20) });
    await invite(await sessionOf(admin), admin, addressOf());
    await expect.poll(async () => (await mailsOf())[0]!.error).toContain(`no such file or directory, open '${file}'`);
    writeFileSync(file, 'from a file\n');
    await expect.poll(() => mails).toHaveLength(1);
    expect(logins.at(-1)).toEqual({ username: 'mailer', password: 'from a file' });
  });

  test('gets the mail of a worker that was killed from another one', async () => {
    const admin = await app.organization();
    const { port, mails } = await start();
    use(port);
    await invite(await sessionOf(admin), admin, addressOf());
    const gone = { status: 'RUNNING', claim_token: newId(), attempts: 1, lease_until: new Date(Date.now() - 1000) };
    await app.db.updateTable('mail').set(gone).execute();
    worker();
    await expect.poll(() => mails).toHaveLength(1);
  });

  test('gets the login', async () => {
    const admin = await app.organization();
    const { port, mails, logins } = await start({ password: 'pass word' });
    use(port, 'mailer:pass%20word@');
    worker();
    await invite(await sessionOf(admin), admin, addressOf());
    await expect.poll(() => mails).toHaveLength(1);
    expect(logins).toEqual([{ username: 'mailer', password: 'pass word' }]);
  });

  test('that answers nothing holds up no other request, and is called again', async () => {
    const admin = await app.organization();
    const silent = await startRaw(() => undefined);
    use(silent.port);
    worker();
    await invite(await sessionOf(admin), admin, addressOf());
    await expect.poll(() => silent.open()).toBe(1);
    ok(await admin.get('/account'), 200);
  });

  test('is refused at the start where it cannot work', () => {
    expect(wrong({ QUARTERDECK_SMTP_URL: 'https://smtp.example.com' })).toThrow(
      'must be a URL that begins with smtp://',
    );
    expect(wrong({ QUARTERDECK_SMTP_URL: 'smtp://smtp.example.com/path' })).toThrow('a host and a port alone');
    expect(wrong({ QUARTERDECK_SMTP_URL: '' })).toThrow('set both, or neither');
    expect(wrong({ QUARTERDECK_SMTP_URL: 'smtp://h:25', QUARTERDECK_SMTP_FROM: 'Me <me@x.example>' })).toThrow(
      'must be one e-mail address',
    );
    const file = { QUARTERDECK_SMTP_PASSWORD_FILE: '/run/secrets/smtp' };
    expect(wrong({ QUARTERDECK_SMTP_URL: 'smtp://h:25', ...file })).toThrow('needs a user without a password');
    expect(wrong({ QUARTERDECK_SMTP_URL: 'smtp://u:p@h:25', ...file })).toThrow('needs a user without a password');
    expect(wrong({ QUARTERDECK_SMTP_URL: 'smtp://u@h:25', ...file })).not.toThrow();
    expect(wrong({ QUARTERDECK_SMTP_URL: 'smtp://:secret@h' })).toThrow('user name');
    expect(wrong({ QUARTERDECK_SMTP_URL: 'smtp://:secret@h' })).not.toThrow('secret@');
  });
});
