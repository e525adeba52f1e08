import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { createPeopleMail, endAllSignIns, removeOldSignIns, setAddress } from '#resources/sign-in/index.ts';
import { makeLink } from '#resources/sign-in/links.ts';
import { ok, useApp, type Actor, type Caller } from '#test/harness/app.ts';
import { useMailServers } from '#test/harness/mail-server.ts';

const app = useApp({ QUARTERDECK_TRUSTED_PROXIES: '127.0.0.1/32', QUARTERDECK_SMTP_FROM: 'quarterdeck@example.com', QUARTERDECK_SMTP_URL: 'smtp://localhost' }); // prettier-ignore
const { start } = useMailServers();
const PASSWORD = 'correct horse battery';
let now = new Date();
let mails: Awaited<ReturnType<typeof start>>['mails'];
let loops: ReturnType<typeof createPeopleMail> = [];

beforeEach(async () => {
  now = new Date();
  vi.spyOn(app.platform.clock, 'now').mockImplementation(() => now);
  const server = await start();
  mails = server.mails;
  app.platform.settings.smtpUrl = `smtp://localhost:${server.port}`;
  loops = createPeopleMail(app.platform, newId(), { pollMs: 20 });
  for (const loop of loops) loop.start();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(loops.map((loop) => loop.stop()));
  for (const table of ['mail', 'sign_in_attempt', 'address_link'] as const) await app.db.deleteFrom(table).execute();
});

const later = (minutes: number) => void (now = new Date(now.getTime() + minutes * 60_000));
const addressOf = () => `${newId()}@people.example`;
const post = (url: string, body: unknown) => app.anonymous('POST', url, body);
const secretIn = (text: string): string => /#(qa_\S+)/.exec(text)![1]!;
const ask = (session: Caller, email: string) => session.put('/account/address', { email });
const present = async (session: Caller) => ok(await session.get('/account/address'), 200);

/** Signs a new person in who has a password, and the address if there is one. */
async function person(admin: Actor, email: string | null = addressOf()) {
  const secret = new URL((await makeLink(app.context, admin.userId)).url).hash.slice(1);
  const name = `n${newId()}`;
  const { token } = ok(await post('/signIn/link/redeem', { secret, name, password: PASSWORD }), 201);
  if (email !== null) await setAddress(app.context, admin.userId, email);
  return { session: app.session(token), name, email, userId: admin.userId };
}

/** Asks for an address and returns the secret that is mailed there. */
async function asked(session: Caller, email: string): Promise<string> {
  const before = mails.length;
  ok(await ask(session, email), 202);
  await expect.poll(() => mails.length).toBe(before + 1);
  expect(mails.at(-1)).toMatchObject({ to: [email] });
  return secretIn(mails.at(-1)!.body);
}

const eventsOf = async (admin: Actor): Promise<string[]> =>
  ok(await admin.get(`/organization/${admin.organizationId}/events?targetId=${admin.userId}`), 200).events.map(
    ({ change }: { change: string }) => JSON.parse(change).recovery_address,
  );

describe('a person', () => {
  test('has another address once the link was used that was mailed there, and the one before is told', async () => {
    const admin = await app.organization();
    const { session, name, email } = await person(admin);
    const wanted = addressOf();
    const secret = await asked(session, wanted);
    expect(await present(session)).toMatchObject({ email, pending: { email: wanted } });
    expect(ok(await post('/signIn/link', { secret }), 200)).toMatchObject({ purpose: 'ADDRESS', name, email: wanted });
    expect((await present(session)).email).toBe(email);
    ok(await post('/signIn/link/address', { secret }), 204);
    expect(await present(session)).toEqual({ email: wanted, pending: null });
    await expect.poll(() => mails.length).toBe(2);
    expect(mails[1]).toMatchObject({ to: [email] });
    expect(mails[1]!.body).toContain(`The account ${name}`);
    expect(mails[1]!.body).not.toContain(wanted);
    ok(await post('/signIn/link/address', { secret }), 404);
    ok(await post('/signIn/recovery', { email: wanted }), 204);
    await expect.poll(() => mails.length).toBe(3);
    expect(mails[2]).toMatchObject({ to: [wanted] });
    expect(await eventsOf(admin)).toEqual(
      expect.arrayContaining(['another one was asked for', 'changed by themselves']),
    );
  });

  test('without an address gets a first one, of which nobody else is told', async () => {
    const { session } = await person(await app.organization(), null);
    const wanted = addressOf();
    ok(await post('/signIn/link/address', { secret: await asked(session, wanted) }), 204);
    expect(await present(session)).toEqual({ email: wanted, pending: null });
    expect(await app.db.selectFrom('mail').select('kind').where('kind', '=', 'FORMER_ADDRESS').execute()).toEqual([]);
  });

  test('withdraws what was asked for, and asks again: only the last link works, once, for one hour', async () => {
    const { session, email } = await person(await app.organization());
    const first = await asked(session, addressOf());
    ok(await session.delete('/account/address/pending'), 204);
    ok(await session.delete('/account/address/pending'), 404);
    const second = await asked(session, addressOf());
    const third = await asked(session, addressOf());
    for (const secret of [first, second]) ok(await post('/signIn/link/address', { secret }), 404);
    later(61);
    expect(await present(session)).toEqual({ email, pending: null });
    ok(await post('/signIn/link', { secret: third }), 404);
    ok(await post('/signIn/link/address', { secret: third }), 404);
    await removeOldSignIns(app.platform);
    expect(await app.db.selectFrom('address_link').select('id').execute()).toEqual([]);
  });

  test('ends the change with another password, and the operator ends it with another address; so does a restore', async () => {
    const { session, userId } = await person(await app.organization());
    const ends = [
      () => session.put('/account/password', { current_password: PASSWORD, password: 'another horse battery' }),
      () => setAddress(app.context, userId, addressOf()),
      () => endAllSignIns(app.db),
    ];
    for (const end of ends) {
      const secret = await asked(session, addressOf());
      await end();
      ok(await post('/signIn/link/address', { secret }), 404);
    }
  });

  test('of two uses of one link at a time, one changes the address', async () => {
    const { session } = await person(await app.organization());
    const secret = await asked(session, addressOf());
    const answers = await Promise.all([1, 2, 3].map(() => post('/signIn/link/address', { secret })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 404, 404]);
  });
});

describe('another address is refused', () => {
  test('in a session that is older than 15 minutes, and to a token, which sees none', async () => {
    const admin = await app.organization();
    const { session, email } = await person(admin);
    expect(ok(await admin.get('/account/address'), 200)).toEqual({ email: null, pending: null });
    ok(await ask(admin, addressOf()), 403);
    ok(await admin.delete('/account/address/pending'), 404);
    later(16);
    expect(ok(await ask(session, addressOf()), 403).message).toContain('15 minutes');
    expect(await present(session)).toEqual({ email, pending: null });
  });

  test('that is none, or is theirs already', async () => {
    const { session, email } = await person(await app.organization());
    for (const wrong of ['ada', 'ada@example.com\r\nBcc: eve@example.com', '"a b"@example.com'])
      expect(ok(await ask(session, wrong), 400).message).toContain('email');
    expect(ok(await ask(session, email!), 400).message).toContain('is your address already');
    expect(mails).toEqual([]);
  });

  test('where the installation sends no mail, with what the operator can do', async () => {
    const { session } = await person(await app.organization());
    app.platform.settings.smtpUrl = '';
    expect(ok(await ask(session, addressOf()), 403).message).toContain('quarterdeck user address');
  });

  test('after too many for one address, whoever asks', async () => {
    const wanted = addressOf();
    const { session } = await person(await app.organization());
    for (let times = 0; times < 4; times++) await asked(session, wanted);
    ok(await ask(session, wanted), 429);
  });

  test('with a wrong or another secret, and none of its links signs in', async () => {
    const { session, name } = await person(await app.organization());
    const secret = await asked(session, addressOf());
    for (const wrong of [
      `${secret.slice(0, -1)}${secret.endsWith('A') ? 'B' : 'A'}`,
      secret.replace('qa_', 'qr_'),
      'x',
    ])
      ok(await post('/signIn/link/address', { secret: wrong }), 404);
    ok(await post('/signIn/link/redeem', { secret, name, password: 'another horse battery' }), 404);
    ok(await session.post('/account/invitation', { secret }), 404);
    ok(await post('/signIn/link/address', { secret }), 204);
  });
});
