import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { enterReadOnly, leaveReadOnly, removeGuards } from '#platform/installation/index.ts';
import { dropPasskey, endAllSignIns, removeOldSignIns, signOut } from '#resources/sign-in/index.ts';
import { makeLink } from '#resources/sign-in/links.ts';
import { ok, useApp, type Actor, type Answer } from '#test/harness/app.ts';
import { SoftAuthenticator, type Deviation } from '#test/harness/authenticator.ts';

const ORIGIN = 'https://qd.example.com';
const app = useApp({ QUARTERDECK_BASE_URL: ORIGIN });
const PASSWORD = 'correct horse battery';
let now = new Date();

beforeEach(() => {
  now = new Date();
  vi.spyOn(app.platform.clock, 'now').mockImplementation(() => now);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await app.db.deleteFrom('sign_in_attempt').execute();
});

const later = (minutes: number) => void (now = new Date(now.getTime() + minutes * 60_000));
const secretOf = (url: string) => new URL(url).hash.slice(1);
const cookieOf = ({ headers }: Answer) => String(headers['set-cookie']).split(';')[0]!;
const post = (url: string, body?: unknown, headers: Record<string, string> = {}) =>
  app.anonymous('POST', url, body, headers);

/** Asks for a passkey by a link. */
const ask = async (secret: string, name = `n${newId()}`) => {
  const answer = await post('/signIn/link/passkey/options', { secret, name });
  return { name, options: ok(answer, 200), cookie: cookieOf(answer) };
};

/** Makes a passkey by a link, and signs in with it. */
const join = async (secret: string, authenticator = new SoftAuthenticator(ORIGIN)) => {
  const { name, options, cookie } = await ask(secret);
  const body = { secret, passkey_name: 'laptop', credential: authenticator.create(options) };
  const made = ok(await post('/signIn/link/passkey', body, { cookie }), 201);
  return { ...made, name, authenticator, session: app.session(made.token) };
};

const personWithPasskey = async (admin: Actor, authenticator?: SoftAuthenticator) =>
  join(secretOf((await makeLink(app.context, admin.userId)).url), authenticator);

const personWithPassword = async (admin: Actor) => {
  const secret = secretOf((await makeLink(app.context, admin.userId)).url);
  const name = `n${newId()}`;
  const { token } = ok(await post('/signIn/link/redeem', { secret, name, password: PASSWORD }), 201);
  return { name, session: app.session(token) };
};

/** Signs in with a passkey. */
const use = async (authenticator: SoftAuthenticator, deviation: Deviation = {}, number = -1) => {
  const answer = await post('/signIn/passkey/options');
  const credential = authenticator.get(ok(answer, 200), deviation, authenticator.credentials.at(number));
  return { credential, cookie: cookieOf(answer), answer: await finish(credential, cookieOf(answer)) };
};
const finish = (credential: unknown, cookie: string) => post('/signIn/passkey', { credential }, { cookie });

type Session = ReturnType<typeof app.session>;

/** Adds a passkey in a session. */
const add = async (session: Session, authenticator: SoftAuthenticator, deviation: Deviation = {}) => {
  const asked = await session.post('/account/passkey/options');
  const credential = authenticator.create(ok(asked, 200), deviation);
  return session.post('/account/passkey', { name: 'phone', credential }, { cookie: cookieOf(asked) });
};
const passkeysOf = async (session: Session) => ok(await session.get('/account/passkey'), 200);

/** Lists the changes that events tell of a person, the newest first. */
const eventsOf = async (reader: Actor, userId: string) => {
  const url = `/organization/${reader.organizationId}/events?targetId=${userId}&pageSize=100`;
  const { events } = ok(await reader.get(url), 200);
  return events.map(({ change }: { change: string | null }) => change && JSON.parse(change));
};

describe('a person with a link', () => {
  test('joins with a passkey in place of a password, and signs in with it without a name', async () => {
    const admin = await app.organization();
    const inviter = await personWithPassword(admin);
    const body = { email: `${newId()}@people.example` };
    const url = `/organization/${admin.organizationId}/inviteMember`;
    const invited = secretOf(ok(await inviter.session.post(url, body), 201).invitation_link);
    const { name, user_id: id, session, authenticator } = await join(invited);
    expect(ok(await session.get('/organization'), 200).results).toHaveLength(1);
    const signedIn = ok((await use(authenticator)).answer, 201);
    expect(signedIn).toMatchObject({ name, user_id: id, token: expect.stringMatching(/^qs_/) });
    expect(ok(await app.session(signedIn.token).get('/account'), 200).nickname).toBe(name);
    // No password signs in for a person without one.
    ok(await post('/signIn', { name, password: PASSWORD }), 401);
    ok(await post('/signIn/link/passkey/options', { secret: invited, name: `n${newId()}` }), 404);
  });

  test('replaces the password by a passkey and ends the sessions; other passkeys stay', async () => {
    const admin = await app.organization();
    const { name, session } = await personWithPassword(admin);
    const authenticator = new SoftAuthenticator(ORIGIN);
    ok(await add(session, authenticator), 201);
    const joined = await personWithPasskey(admin, authenticator);
    ok(await session.get('/account'), 401);
    ok(await post('/signIn', { name, password: PASSWORD }), 401);
    expect(await passkeysOf(joined.session)).toMatchObject({ has_password: false, results: [{}, {}] });
    for (const number of [0, 1]) ok((await use(authenticator, {}, number)).answer, 201);
  });

  test('is told of a taken name before a passkey is made, and of a name that was another link’s', async () => {
    const admin = await app.organization();
    const { name } = await personWithPassword(admin);
    const secret = secretOf((await makeLink(app.context, (await app.organization()).userId)).url);
    expect(ok(await post('/signIn/link/passkey/options', { secret, name }), 409).message).toContain('is taken');
    const uuid = await post('/signIn/link/passkey/options', { secret, name: newId() });
    expect(ok(uuid, 400).message).toContain('must not be a UUID');
    const { options, cookie } = await ask(secret);
    const other = secretOf((await makeLink(app.context, admin.userId)).url);
    const credential = new SoftAuthenticator(ORIGIN).create(options);
    const refused = await post(
      '/signIn/link/passkey',
      { secret: other, passkey_name: 'laptop', credential },
      { cookie },
    );
    expect(ok(refused, 400).message).toContain('was made for another link');
  });
});

test('a passkey whose authenticator signs the request with it, unasked, is taken', async () => {
  const { session } = await personWithPasskey(await app.organization());
  const authenticator = new SoftAuthenticator(ORIGIN);
  ok(await add(session, authenticator, { isSelfAttested: true }), 201);
  ok((await use(authenticator)).answer, 201);
});

describe('a new passkey is refused', () => {
  const makeBy = async (deviation: Deviation, cookie?: string) => {
    const secret = secretOf((await makeLink(app.context, (await app.organization()).userId)).url);
    const asked = await ask(secret);
    const credential = new SoftAuthenticator(ORIGIN).create(asked.options, deviation);
    const body = { secret, passkey_name: 'laptop', credential };
    return post('/signIn/link/passkey', body, { cookie: cookie ?? asked.cookie });
  };

  test.each<[string, Deviation, string]>([
    ['of a page elsewhere', { origin: 'https://evil.example' }, 'expected "https://qd.example.com"'],
    ['for another challenge', { challenge: 'AAAA' }, 'challenge "AAAA"'],
    ['for another host', { rpId: 'evil.example' }, 'RP ID'],
    ['without verification of the person', { isVerified: false }, 'User verification was required'],
    ['that was signed with in place of made', { type: 'webauthn.get' }, 'webauthn.get'],
    ['with a certificate of its maker', { attestation: ['packed', new Map([['x5c', []]])] }, 'is not asked for'],
    ['with an attestation of another form', { attestation: ['tpm', new Map()] }, 'is not asked for'],
  ])('%s', async (_name, deviation, reason) => {
    const { message } = ok(await makeBy(deviation), 400);
    expect(message).toMatch(/^credential: /);
    expect(message).toContain(reason);
  });

  test('without the cookie of its browser, or with one that was changed', async () => {
    for (const cookie of ['', '__Host-quarterdeck-passkey-link=e30.AAAA', '__Host-quarterdeck-passkey-link=e30'])
      expect(ok(await makeBy({}, cookie), 400).message).toContain('no open request for a passkey');
  });

  test('whose bytes are no attestation, with an answer that says so', async () => {
    const secret = secretOf((await makeLink(app.context, (await app.organization()).userId)).url);
    for (const attestationObject of ['oWNmbXRkbm9uZQ', '_'.repeat(32_000), `${'gYGB'.repeat(8000)}`]) {
      const { options, cookie } = await ask(secret);
      const credential = new SoftAuthenticator(ORIGIN).create(options);
      credential.response.attestationObject = attestationObject;
      const refused = await post('/signIn/link/passkey', { secret, passkey_name: 'p', credential }, { cookie });
      expect(ok(refused, 400).message).toMatch(/^credential: /);
    }
    ok(await post('/signIn/link', { secret }), 200);
  });
});

describe('a passkey does not sign in', () => {
  test.each<[string, Deviation]>([
    ['at a page elsewhere', { origin: 'https://evil.example' }],
    ['for another challenge', { challenge: 'AAAA' }],
    ['for another host', { rpId: 'evil.example' }],
    ['without verification of the person', { isVerified: false }],
    ['without its person', { userHandle: null }],
    ['as that of another person', { userHandle: Buffer.alloc(16).toString('base64url') }],
    ['with the signature of another key', { isForged: true }],
  ])('%s; the refusal is the same, and the attempt is an event', async (_name, deviation) => {
    const admin = await app.organization();
    const { authenticator } = await personWithPasskey(admin);
    const refused = ok((await use(authenticator, deviation)).answer, 401);
    const stranger = new SoftAuthenticator(ORIGIN);
    stranger.create({ challenge: '', rp: { id: 'qd.example.com' }, user: { id: 'AAAA' } });
    const unknown = ok((await use(stranger)).answer, 401);
    expect(refused.message).toBe(unknown.message);
    const failed = { sign_in: 'failed', reason: 'wrong passkey' };
    await expect.poll(async () => (await eventsOf(admin, admin.userId))[0], { timeout: 5000 }).toMatchObject(failed);
    ok((await use(authenticator)).answer, 201);
  });

  test('twice with one answer, after five minutes, in another browser, or with a challenge of another purpose', async () => {
    const admin = await app.organization();
    const { authenticator, session } = await personWithPasskey(admin);
    const { credential, cookie, answer } = await use(authenticator);
    ok(answer, 201);
    const over = 'no open request for a passkey';
    expect(ok(await finish(credential, cookie), 400).message).toContain(over);
    const asked = await post('/signIn/passkey/options');
    const signed = authenticator.get(ok(asked, 200));
    expect(ok(await finish(signed, ''), 400).message).toContain(over);
    const other = cookieOf(await post('/signIn/passkey/options'));
    ok(await finish(signed, other), 401);
    const adding = await session.post('/account/passkey/options');
    const moved = cookieOf(adding).replace('-add=', '-sign-in=');
    const wrong = authenticator.get({ ...ok(adding, 200), rpId: 'qd.example.com' });
    expect(ok(await finish(wrong, moved), 400).message).toContain(over);
    later(6);
    expect(ok(await finish(signed, cookieOf(asked)), 400).message).toContain(over);
  });

  test('one answer that is sent by several at once begins one session', async () => {
    const { authenticator } = await personWithPasskey(await app.organization());
    const asked = await post('/signIn/passkey/options');
    const signed = authenticator.get(ok(asked, 200));
    const answers = await Promise.all(Array.from({ length: 4 }, () => finish(signed, cookieOf(asked))));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 400, 400, 400]);
  });

  test('with a count of signatures that does not rise, if its authenticator counts', async () => {
    const authenticator = new SoftAuthenticator(ORIGIN, { counts: true });
    await personWithPasskey(await app.organization(), authenticator);
    for (let time = 0; time < 2; time++) ok((await use(authenticator)).answer, 201);
    for (const count of [0, 1, 2]) ok((await use(authenticator, { count })).answer, 401);
    ok((await use(authenticator, { count: 9 })).answer, 201);
  });

  test('after too many refusals of one network, which wrong passwords count towards, too', async () => {
    const { authenticator, name } = await personWithPasskey(await app.organization());
    await app.db.updateTable('sign_in_attempt').set({ used: 0 }).execute();
    ok(await post('/signIn', { name, password: 'wrong horse battery' }), 401);
    await app.db.updateTable('sign_in_attempt').set({ used: 50 }).where('used', '=', 1).execute();
    const { answer } = await use(authenticator);
    expect(ok(answer, 429).message).toContain('Too many attempts to sign in failed');
    expect(answer.headers['retry-after']).toMatch(/^\d+$/);
  });
});

describe('a person who is signed in', () => {
  test('adds passkeys, sees their last use, and removes them, of which the organization is told', async () => {
    const admin = await app.organization();
    const { session, name } = await personWithPassword(admin);
    const other = app.session(ok(await post('/signIn', { name, password: PASSWORD }), 201).token);
    const authenticator = new SoftAuthenticator(ORIGIN);
    const made = ok(await add(session, authenticator), 201);
    expect(made).toMatchObject({ name: 'phone', site: 'qd.example.com', usable: true, last_used_at: null });
    ok((await use(authenticator)).answer, 201);
    const { has_password: hasPassword, results } = await passkeysOf(session);
    expect(hasPassword).toBe(true);
    expect(results).toEqual([{ ...made, last_used_at: now.toISOString() }]);
    expect(JSON.stringify(results)).not.toContain('key"');
    ok(await session.delete(`/account/passkey/${made.id}`), 204);
    ok(await other.get('/account'), 401);
    ok(await session.get('/account'), 200);
    ok((await use(authenticator)).answer, 401);
    ok(await session.delete(`/account/passkey/${made.id}`), 404);
    expect(await eventsOf(admin, admin.userId)).toEqual(
      expect.arrayContaining([
        { passkey: 'removed by themselves', passkey_name: 'phone' },
        { passkey: 'added by themselves', passkey_name: 'phone' },
        expect.objectContaining({ session_id: expect.any(String), passkey_name: 'phone' }),
      ]),
    );
  });

  test('gives a passkey another name, of which the organization is told', async () => {
    const admin = await app.organization();
    const { session } = await personWithPasskey(admin);
    const [{ id, name }] = (await passkeysOf(session)).results;
    // Also later than a change of what signs in.
    later(16);
    expect(ok(await session.put(`/account/passkey/${id}`, { name: 'old phone' }), 200)).toMatchObject({
      id,
      name: 'old phone',
    });
    expect((await passkeysOf(session)).results).toMatchObject([{ id, name: 'old phone' }]);
    const user = ok(await session.get('/account'), 200);
    expect(await eventsOf(admin, user.id)).toContainEqual({
      passkey: 'renamed by themselves',
      passkey_name: 'old phone',
      former_name: name,
    });
    for (const body of [{}, { name: '' }, { name: 'x'.repeat(101) }, { name: 'a', other: true }, { name: 'a\u0000' }])
      ok(await session.put(`/account/passkey/${id}`, body), 400);
    expect((await passkeysOf(session)).results).toMatchObject([{ name: 'old phone' }]);
    ok(await session.put(`/account/passkey/${newId()}`, { name: 'a' }), 404);
  });

  test('keeps the last way to sign in, which a passkey of an earlier address is not', async () => {
    const { session, authenticator } = await personWithPasskey(await app.organization());
    const [first] = (await passkeysOf(session)).results;
    const remove = () => session.delete(`/account/passkey/${first.id}`);
    expect(ok(await remove(), 409).message).toContain('your last way to sign in');
    const second = ok(await add(session, authenticator), 201);
    await app.db.updateTable('passkey').set({ rp_id: 'old.example.com' }).where('id', '=', second.id).execute();
    expect((await passkeysOf(session)).results[1]).toMatchObject({ site: 'old.example.com', usable: false });
    ok(await remove(), 409);
    await app.db.updateTable('passkey').set({ rp_id: 'qd.example.com' }).where('id', '=', second.id).execute();
    ok(await remove(), 204);
    ok((await use(authenticator, {}, 1)).answer, 201);
  });

  test('of two passkeys that are removed at the same time, one stays', async () => {
    const { session, authenticator } = await personWithPasskey(await app.organization());
    ok(await add(session, authenticator), 201);
    const { results } = await passkeysOf(session);
    const answers = await Promise.all(
      results.map(({ id }: { id: string }) => session.delete(`/account/passkey/${id}`)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 409]);
  });

  test('sets a first password, and then needs the present one to change it', async () => {
    const { session, name, authenticator } = await personWithPasskey(await app.organization());
    const set = (body: object) => session.put('/account/password', body);
    const given = await set({ current_password: 'x', password: PASSWORD });
    expect(ok(given, 400).message).toContain('current_password: is not allowed here');
    ok(await set({ password: PASSWORD }), 204);
    ok(await post('/signIn', { name, password: PASSWORD }), 201);
    expect(ok(await set({ password: 'another horse battery' }), 400).message).toContain(
      'current_password: is required',
    );
    const [{ id }] = (await passkeysOf(session)).results;
    ok(await session.delete(`/account/passkey/${id}`), 204);
    ok((await use(authenticator)).answer, 401);
  });

  test('changes nothing of it in a session that is older than 15 minutes', async () => {
    const { session, authenticator } = await personWithPasskey(await app.organization());
    const asked = await session.post('/account/passkey/options');
    const credential = authenticator.create(ok(asked, 200));
    const [{ id }] = (await passkeysOf(session)).results;
    later(16);
    const answers = [
      await session.post('/account/passkey/options'),
      await session.post('/account/passkey', { name: 'p', credential }, { cookie: cookieOf(asked) }),
      await session.delete(`/account/passkey/${id}`),
      await session.put('/account/password', { password: PASSWORD }),
    ];
    for (const answer of answers) expect(ok(answer, 403).message).toContain('began more than 15 minutes ago');
  });

  test('adds no passkey that was asked for in another session, and none that is here already', async () => {
    const { session, authenticator } = await personWithPasskey(await app.organization());
    const other = await personWithPasskey(await app.organization());
    const asked = await session.post('/account/passkey/options');
    const credential = authenticator.create(ok(asked, 200));
    const body = { name: 'p', credential };
    const moved = await other.session.post('/account/passkey', body, { cookie: cookieOf(asked) });
    expect(ok(moved, 400).message).toContain('in another session');
    ok(await add(session, authenticator), 201);
    const { id } = authenticator.credentials.at(-1)!;
    const again = await add(other.session, new SoftAuthenticator(ORIGIN), { id });
    expect(ok(again, 409).message).toContain('is registered here already');
    const { excludeCredentials } = ok(await session.post('/account/passkey/options'), 200);
    expect(excludeCredentials.map((one: { id: string }) => one.id)).toContain(id.toString('base64url'));
  });

  test('has at most 20 passkeys', async () => {
    const { session, user_id: id, authenticator } = await personWithPasskey(await app.organization());
    const present = await app.db.selectFrom('passkey').selectAll().where('user_id', '=', id).executeTakeFirstOrThrow();
    const more = Array.from({ length: 18 }, () => {
      const other = newId();
      return { ...present, id: other, credential_id: Buffer.from(other) };
    });
    await app.db.insertInto('passkey').values(more).execute();
    ok(await add(session, authenticator), 201);
    expect(ok(await session.post('/account/passkey/options'), 409).message).toContain('You have 20 passkeys');
  });
});

test('a token has no passkeys, and makes, renames and removes none', async () => {
  const admin = await app.organization();
  const { session } = await personWithPasskey(admin);
  const [{ id }] = (await passkeysOf(session)).results;
  expect(ok(await admin.get('/account/passkey'), 200)).toEqual({ has_password: false, results: [] });
  ok(await admin.post('/account/passkey/options'), 403);
  ok(await admin.put(`/account/passkey/${id}`, { name: 'mine' }), 403);
  ok(await admin.delete(`/account/passkey/${id}`), 403);
  const stranger = await personWithPasskey(await app.organization());
  ok(await stranger.session.put(`/account/passkey/${id}`, { name: 'mine' }), 404);
  ok(await stranger.session.delete(`/account/passkey/${id}`), 404);
});

test('cookies of challenges are bound to the host, unreadable to scripts, and not sent by other sites', async () => {
  const { headers } = await post('/signIn/passkey/options');
  expect(headers['set-cookie']).toMatch(
    /^__Host-quarterdeck-passkey-sign-in=[\w-]+\.[\w-]+; Path=\/; Max-Age=300; HttpOnly; SameSite=Strict; Secure$/,
  );
});

test('people sign in with passkeys while the installation is read-only, and add none', async () => {
  const authenticator = new SoftAuthenticator(ORIGIN, { counts: true });
  const { session } = await personWithPasskey(await app.organization(), authenticator);
  ok(await session.put('/account/password', { password: PASSWORD }), 204);
  await app.db.transaction().execute((db) => enterReadOnly(db, new Date()));
  try {
    ok((await use(authenticator)).answer, 201);
    const refused = await add(session, new SoftAuthenticator(ORIGIN));
    expect(refused.body.message).toContain('read-only');
    const [{ id }] = (await passkeysOf(session)).results;
    expect((await session.delete(`/account/passkey/${id}`)).status).toBe(refused.status);
  } finally {
    await leaveReadOnly(app.db, 7);
    await removeGuards(app.db);
  }
  expect((await passkeysOf(session)).results).toHaveLength(1);
  ok((await use(authenticator)).answer, 201);
});

describe('the operator', () => {
  test('removes a passkey, also the last one, and gives a link by which its person signs in again', async () => {
    const admin = await app.organization();
    const { session, authenticator } = await personWithPasskey(admin);
    const [{ id }] = (await passkeysOf(session)).results;
    expect(await dropPasskey(app.context, admin.userId, newId())).toBeUndefined();
    expect(await dropPasskey(app.context, admin.userId, id)).toBe('laptop');
    ok(await session.get('/account'), 401);
    ok((await use(authenticator)).answer, 401);
    expect((await eventsOf(admin, admin.userId))[0]).toEqual({
      passkey: 'removed by the operator',
      passkey_name: 'laptop',
    });
    ok((await use((await personWithPasskey(admin)).authenticator)).answer, 201);
  });

  test('removes all of them with the password; a deleted person has none; a restore keeps them', async () => {
    const admin = await app.organization();
    const { authenticator } = await personWithPasskey(admin);
    await endAllSignIns(app.db);
    ok((await use(authenticator)).answer, 201);
    await signOut(app.context, admin.userId, true);
    ok((await use(authenticator)).answer, 401);
    const other = await personWithPasskey(await app.organization());
    await app.db.deleteFrom('sign_in').where('user_id', '=', other.user_id).execute();
    ok((await use(other.authenticator)).answer, 401);
  });

  test('finds no challenge left that is over', async () => {
    const { authenticator } = await personWithPasskey(await app.organization());
    ok((await use(authenticator)).answer, 201);
    const count = async () => (await app.db.selectFrom('passkey_challenge').select('id').execute()).length;
    await removeOldSignIns(app.platform);
    expect(await count()).toBeGreaterThan(0);
    later(6);
    await removeOldSignIns(app.platform);
    expect(await count()).toBe(0);
  });
});
