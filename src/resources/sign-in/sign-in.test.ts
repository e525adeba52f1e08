import { beforeEach, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { removeOldSignIns, signOut } from '#resources/sign-in/index.ts';
import { makeLink } from '#resources/sign-in/links.ts';
import { ok, useApp, type Actor, type Answer, type Caller } from '#test/harness/app.ts';

const app = useApp({ QUARTERDECK_TRUSTED_PROXIES: '127.0.0.1/32' });

const PASSWORD = 'correct horse battery';
const secretOf = (url: string) => new URL(url).hash.slice(1);

/** Calls without credentials from an address of its own, so that tests do not use up each other's attempts. */
const visitor = (address = `2001:db8:${hex()}:${hex()}::1`) => ({
  post: (url: string, body: unknown) => app.anonymous('POST', url, body, { 'x-forwarded-for': address }),
});
const hex = () => Math.floor(Math.random() * 0xffff).toString(16);

interface Signed {
  token: string;
  session_id: string;
  user_id: string;
  name: string;
}

/** Sessions of administrators by their organization: a token sends no link. */
const sessions = new Map<string, Caller>();

const sessionOf = async (admin: Actor): Promise<Caller> => {
  const known = sessions.get(admin.organizationId);
  if (known) return known;
  const { url } = await makeLink(app.context, admin.userId);
  const { token } = await redeem(secretOf(url));
  const session = app.session(token);
  sessions.set(admin.organizationId, session);
  return session;
};

const invite = async (admin: Actor, changes: object = {}) => {
  const body = { email: `${newId()}@people.example`, role: 'DEVELOPER', ...changes };
  const sender = await sessionOf(admin);
  const invitation = ok(await sender.post(`/organization/${admin.organizationId}/inviteMember`, body), 201);
  return { ...invitation, secret: secretOf(invitation.invitation_link) };
};

const redeem = async (secret: string, changes: object = {}, from = visitor()) =>
  ok<Signed>(
    await from.post('/signIn/link/redeem', { secret, name: `n${newId()}`, password: PASSWORD, ...changes }),
    201,
  );

/** Makes a member with a password; returns their session. */
const person = async (admin: Actor, changes: object = {}): Promise<Signed> => {
  const { secret } = await invite(admin);
  return redeem(secret, changes);
};

const signIn = (name: string, password = PASSWORD, from = visitor()) => from.post('/signIn', { name, password });

describe('the link of an invitation', () => {
  test('tells what it is for as often as it is opened, makes an account and a member, and is over then', async () => {
    const admin = await app.organization('Acme');
    const { secret, email, expires_at, id } = await invite(admin);
    const shown = { purpose: 'INVITATION', name: null, email, role_name: 'devops', inviter: 'First Administrator' };
    for (let times = 0; times < 2; times++)
      expect(ok(await visitor().post('/signIn/link', { secret }), 200)).toEqual({
        ...shown,
        organization_name: 'Acme',
        expires_at,
      });
    const made = await redeem(secret, { name: 'Ada', first_name: 'Ada', last_name: 'Lovelace' });
    const ada = app.session(made.token);
    expect(ok(await ada.get('/account'), 200)).toMatchObject({ id: made.user_id, nickname: 'Ada', first_name: 'Ada' });
    ok(await ada.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
    ok(await ada.post(`/organization/${admin.organizationId}/inviteMember`, { email: 'x@y.example' }), 403);
    const { results } = ok(await admin.get(`/organization/${admin.organizationId}/member`), 200);
    expect(results[1]).toMatchObject({ id: made.user_id, name: 'Ada Lovelace', role_name: 'devops', email: '' });
    const events = ok(await admin.get(`/organization/${admin.organizationId}/events?targetId=${id}`), 200).events;
    expect(events.map((event: { triggered_by: string }) => event.triggered_by)).toContain('Ada Lovelace');
    ok(await visitor().post('/signIn/link', { secret }), 404);
    ok(await visitor().post('/signIn/link/redeem', { secret, name: `n${newId()}`, password: PASSWORD }), 404);
  });

  test('is shown to the inviter alone: neither lists, nor events, nor the database have its secret', async () => {
    const admin = await app.organization();
    const { secret, id } = await invite(admin);
    const last = secret.slice(-43);
    const url = `/organization/${admin.organizationId}`;
    for (const path of [`${url}/inviteMember`, `${url}/inviteMember/${id}`, `${url}/events`])
      expect(JSON.stringify(ok(await admin.get(path), 200))).not.toContain(last);
    const rows = await app.db.selectFrom('member_invitation').selectAll().where('id', '=', id).execute();
    expect(JSON.stringify(rows)).not.toContain(last);
  });

  test('lets one in of many who open it at once', async () => {
    const admin = await app.organization();
    const { secret } = await invite(admin);
    const tries = Array.from({ length: 5 }, () =>
      visitor().post('/signIn/link/redeem', { secret, name: `n${newId()}`, password: PASSWORD }),
    );
    const statuses = (await Promise.all(tries)).map(({ status }) => status).sort();
    expect(statuses).toEqual([201, 404, 404, 404, 404]);
    expect(ok(await admin.get(`/organization/${admin.organizationId}/member`), 200).results).toHaveLength(2);
  });

  test('is accepted with the account that one has; a token accepts nothing', async () => {
    const [first, second] = [await app.organization(), await app.organization()];
    const ada = app.session((await person(first)).token);
    const { secret } = await invite(second);
    ok(await second.post('/account/invitation', { secret }), 403);
    ok(await app.anonymous('POST', '/account/invitation', { secret }), 401);
    expect(ok(await ada.post('/account/invitation', { secret }), 201)).toMatchObject({ role_name: 'devops' });
    ok(await ada.get(`/organization/${second.organizationId}`), 200);
    ok(await ada.post('/account/invitation', { secret }), 404);
    const again = await invite(second);
    ok(await ada.post('/account/invitation', { secret: again.secret }), 409);
  });

  test('is over when it was withdrawn or is too old, and makes nothing then', async () => {
    const admin = await app.organization();
    const [withdrawn, old] = [await invite(admin), await invite(admin)];
    ok(await admin.delete(`/organization/${admin.organizationId}/inviteMember/${withdrawn.id}`), 204);
    await app.db
      .updateTable('member_invitation')
      .set({ expires_at: new Date(Date.now() - 1000) })
      .where('id', '=', old.id)
      .execute();
    for (const { secret } of [withdrawn, old]) {
      const name = `n${newId()}`;
      ok(await visitor().post('/signIn/link', { secret }), 404);
      const refused = await visitor().post('/signIn/link/redeem', { secret, name, password: PASSWORD });
      expect(ok(refused, 404).message).toContain('not valid');
      expect(await app.db.selectFrom('sign_in').selectAll().where('name', '=', name).execute()).toEqual([]);
    }
  });

  test('gives no more than its sender may give when it is opened', async () => {
    const admin = await app.organization();
    const url = `/organization/${admin.organizationId}`;
    const roles = ok(await admin.get(`${url}/availableRole`), 200).results as { id: string; name: string }[];
    const idOf = (name: string) => roles.find((role) => role.name === name)!.id;
    const sender = await person(admin);
    const change = { user_id: sender.user_id, role_id: idOf('admin') };
    ok(await admin.put(`${url}/member`, change), 200);
    const body = { email: `${newId()}@people.example`, role: 'ADMIN' };
    const { invitation_link } = ok(await app.session(sender.token).post(`${url}/inviteMember`, body), 201);
    ok(await admin.put(`${url}/member`, { ...change, role_id: idOf('viewer') }), 200);
    const name = `n${newId()}`;
    const given = { secret: secretOf(invitation_link), name, password: PASSWORD };
    ok(await visitor().post('/signIn/link/redeem', given), 403);
    ok(await signIn(name), 401);
  });

  test('is none if a token sent it, which ends with what was made by it', async () => {
    const admin = await app.organization();
    const body = { email: `${newId()}@people.example` };
    const sent = ok(await admin.post(`/organization/${admin.organizationId}/inviteMember`, body), 201);
    expect(sent.invitation_link).toContain(`inviteToken=${sent.id}`);
    const rows = await app.db.selectFrom('member_invitation').selectAll().where('id', '=', sent.id).execute();
    expect(rows[0]!.secret_hash).toBeNull();
    const { pathname, search } = new URL(sent.invitation_link);
    expect(ok(await app.anonymous('GET', pathname + search), 200).message).toContain('in a session of their own');
  });

  test('is over when its sender got another password, or was signed out by the operator', async () => {
    const admin = await app.organization();
    const [first, second] = [await invite(admin), await invite(admin)];
    const other = { current_password: PASSWORD, password: 'another horse battery' };
    ok(await (await sessionOf(admin)).put('/account/password', other), 204);
    ok(await visitor().post('/signIn/link', { secret: first.secret }), 404);
    const third = await invite(admin);
    await signOut(app.context, admin.userId, false);
    for (const { secret } of [second, third]) ok(await visitor().post('/signIn/link', { secret }), 404);
  });

  test('makes nobody the first administrator: whoever joins makes no organizations', async () => {
    const { token } = await person(await app.organization());
    ok(await app.session(token).post('/organization', { name: newId(), plan: 'FREE' }), 403);
  });

  test.each([
    ['a short password', { password: 'too short' }, 'password'],
    ['a password of few characters', { password: 'abababababab' }, 'password'],
    ['the name as the password', { name: 'ada.lovelace', password: 'ada.lovelace1' }, 'password'],
    ['a name with a space', { name: 'ada lovelace' }, 'name'],
    ['an id as a name', { name: newId() }, 'name'],
    ['a name of two lines', { first_name: 'Ada\nLovelace' }, 'first_name'],
    ['no name', { name: undefined }, 'name'],
    ['an unknown field', { admin: true }, 'admin'],
  ])('refuses %s, and stays usable', async (_what, changes, field) => {
    const { secret } = await invite(await app.organization());
    const body = { secret, name: `n${newId()}`, password: PASSWORD, ...changes };
    expect(ok(await visitor().post('/signIn/link/redeem', body), 400).errors[0].field).toBe(field);
    await redeem(secret);
  });

  test('refuses a taken name in whatever case, and stays usable', async () => {
    const admin = await app.organization();
    const name = `n${newId()}`;
    await person(admin, { name });
    const { secret } = await invite(admin);
    const body = { secret, name: name.toUpperCase(), password: PASSWORD };
    expect(ok(await visitor().post('/signIn/link/redeem', body), 409).message).toContain('taken');
    await redeem(secret);
  });
});

describe('a password', () => {
  test('signs in under the name in any case; letters may be typed as other code points', async () => {
    const name = `n${newId()}`;
    const made = await person(await app.organization(), { name, password: 'caf\u00e9 au lait noir' });
    const signed = ok<Signed>(await signIn(name.toUpperCase(), 'cafe\u0301 au lait noir'), 201);
    expect(signed).toMatchObject({ user_id: made.user_id, name });
    expect(signed.token).not.toBe(made.token);
    ok(await app.session(signed.token).get('/account'), 200);
  });

  test('that is wrong is refused like a name that nobody has', async () => {
    const { name } = await person(await app.organization());
    const [wrong, unknown] = [await signIn(name, 'wrong horse battery'), await signIn(`n${newId()}`)];
    expect(ok(wrong, 401)).toEqual({ ...ok(unknown, 401), request_id: wrong.body.request_id });
  });

  test('is stored as a digest with a salt of its own', async () => {
    const admin = await app.organization();
    const [one, other] = [await person(admin), await person(admin)];
    const rows = await app.db
      .selectFrom('sign_in')
      .selectAll()
      .where('user_id', 'in', [one.user_id, other.user_id])
      .execute();
    expect(rows).toHaveLength(2);
    expect(rows[0]!.password_hash).not.toEqual(rows[1]!.password_hash);
    expect(rows.map(({ memory_kib, passes }) => [memory_kib, passes])).toEqual([
      [19_456, 2],
      [19_456, 2],
    ]);
  });

  test('is changed by whoever knows it, which ends the other sessions and says so in an event', async () => {
    const admin = await app.organization();
    const first = await person(admin);
    const second = ok<Signed>(await signIn(first.name), 201);
    const [ada, elsewhere] = [app.session(first.token), app.session(second.token)];
    const wrong = { current_password: 'wrong horse battery', password: 'another horse battery' };
    expect(ok(await ada.put('/account/password', wrong), 400).errors[0].field).toBe('current_password');
    ok(await elsewhere.get('/account'), 200);
    ok(await ada.put('/account/password', { ...wrong, current_password: PASSWORD }), 204);
    ok(await ada.get('/account'), 200);
    ok(await elsewhere.get('/account'), 401);
    ok(await signIn(first.name), 401);
    ok(await signIn(first.name, 'another horse battery'), 201);
    const url = `/organization/${admin.organizationId}/events?targetId=${first.user_id}`;
    const changed = { event_type: 'UPDATE', triggered_by: first.name, change: '{"password":"changed by themselves"}' };
    expect(ok(await admin.get(url), 200).events).toContainEqual(expect.objectContaining(changed));
    ok(await admin.put('/account/password', { ...wrong }), 403);
  });

  test('can be guessed a few times from one address, and by its owner from elsewhere meanwhile', async () => {
    const { name } = await person(await app.organization());
    const attacker = visitor();
    const statuses: number[] = [];
    for (let times = 0; times < 11; times++)
      statuses.push((await signIn(name, `guess number ${times}`, attacker)).status);
    expect(statuses).toEqual([...Array<number>(10).fill(401), 429]);
    // The right one is not tried either.
    const refused = await signIn(name, PASSWORD, attacker);
    expect(ok(refused, 429).message).toMatch(/try again in \d+ s/);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    ok(await signIn(name), 201);
  });

  test('of an IPv6 network is guessed by all of its addresses together', async () => {
    const { name } = await person(await app.organization());
    const network = `2001:db8:${hex()}:${hex()}`;
    const answers: Answer[] = [];
    for (let times = 0; times < 11; times++)
      answers.push(await signIn(name, `guess number ${times}`, visitor(`${network}::${times + 1}`)));
    expect(answers.at(-1)!.status).toBe(429);
  });

  test('is guessed no more often than that: refused guesses are not counted', async () => {
    await app.db.deleteFrom('sign_in_attempt').execute();
    const { name } = await person(await app.organization());
    await app.db.deleteFrom('sign_in_attempt').execute();
    const attacker = visitor();
    for (let times = 0; times < 60; times++) await signIn(name, `guess number ${times}`, attacker);
    const rows = await app.db.selectFrom('sign_in_attempt').select('used').orderBy('used').execute();
    // Ten with this name from this address, and so ten of the address and ten of the name.
    expect(rows.map(({ used }) => used)).toEqual([10, 10, 10]);
    ok(await signIn(name), 201);
  });

  test('that nobody has is guessed a limited number of times from one address, whatever the names', async () => {
    const attacker = visitor();
    const statuses: number[] = [];
    for (let times = 0; times < 52; times++) statuses.push((await signIn(`n${newId()}`, PASSWORD, attacker)).status);
    expect(statuses).toEqual([...Array<number>(50).fill(401), 429, 429]);
  });

  test('that is not set for the fault of others uses up no attempts', async () => {
    const { secret } = await invite(await app.organization());
    const home = visitor();
    for (let times = 0; times < 60; times++)
      ok(await home.post('/signIn/link/redeem', { secret, name: 'ada', password: 'aaaaaaaaaaaa' }), 400);
    await redeem(secret, {}, home);
  });

  test('is right for many who sign in at once', async () => {
    const { name } = await person(await app.organization());
    const home = visitor();
    const answers = await Promise.all(Array.from({ length: 15 }, () => signIn(name, PASSWORD, home)));
    expect(answers.map(({ status }) => status)).toEqual(Array(15).fill(201));
  });

  test('that is right uses up no attempts', async () => {
    const { name } = await person(await app.organization());
    const home = visitor();
    for (let times = 0; times < 12; times++) ok(await signIn(name, PASSWORD, home), 201);
  });
});

describe('a session', () => {
  test('is listed with its device, ended by its owner, and by nobody else', async () => {
    const admin = await app.organization();
    const [ada, eve] = [await person(admin), await person(admin)];
    const other = ok<Signed>(await signIn(ada.name), 201);
    const caller = app.session(ada.token);
    const { results } = ok(await caller.get('/account/session'), 200);
    expect(results.map(({ id, current }: { id: string; current: boolean }) => [id, current])).toEqual([
      [other.session_id, false],
      [ada.session_id, true],
    ]);
    expect(results[0]).toMatchObject({ user_agent: expect.any(String), address: expect.stringContaining('2001:db8') });
    expect(JSON.stringify(results)).not.toContain(other.token.slice(-43));
    ok(await app.session(eve.token).delete(`/account/session/${other.session_id}`), 404);
    ok(await app.session(other.token).get('/account'), 200);
    ok(await caller.delete(`/account/session/${other.session_id}`), 204);
    ok(await app.session(other.token).get('/account'), 401);
    ok(await caller.delete(`/account/session/${ada.session_id}`), 204);
    ok(await caller.get('/account'), 401);
  });

  test('is over after its days, and after a week without a request', async () => {
    const made = await person(await app.organization());
    const caller = app.session(made.token);
    const set = (changes: object) =>
      app.db.updateTable('sign_in_session').set(changes).where('id', '=', made.session_id).execute();
    const ago = (days: number) => new Date(Date.now() - days * 24 * 3600_000);
    await set({ last_used_at: ago(6.9) });
    ok(await caller.get('/account'), 200);
    // That request counts.
    const row = await app.db
      .selectFrom('sign_in_session')
      .select('last_used_at')
      .where('id', '=', made.session_id)
      .executeTakeFirstOrThrow();
    expect(row.last_used_at.getTime()).toBeGreaterThan(ago(1).getTime());
    await set({ last_used_at: ago(7.1) });
    ok(await caller.get('/account'), 401);
    await set({ last_used_at: new Date(), expires_at: ago(0) });
    ok(await caller.get('/account'), 401);
  });

  test('acts with the rights that its person has now', async () => {
    const admin = await app.organization();
    const made = await person(admin);
    const caller = app.session(made.token);
    const url = `/organization/${admin.organizationId}`;
    ok(await caller.get(url), 200);
    ok(await admin.call('DELETE', `${url}/member`, { user_id: made.user_id }), 204);
    ok(await caller.get(url), 404);
    ok(await caller.get('/account'), 200);
  });

  test('with another secret, of another form or unknown is none', async () => {
    const { token } = await person(await app.organization());
    const other = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`;
    const unknown = token.replace(/_[0-9a-f]{32}_/, `_${newId().replaceAll('-', '')}_`);
    for (const text of [other, unknown, 'qs_', `qd${token.slice(2)}`, token.slice(3)])
      ok(await app.session(text).get('/account'), 401);
  });

  test('of which a person has too many ends the oldest', async () => {
    const first = await person(await app.organization());
    const home = visitor();
    for (let times = 0; times < 20; times++) ok(await signIn(first.name, PASSWORD, home), 201);
    ok(await app.session(first.token).get('/account'), 401);
  });
});

describe('the one-time link of a person', () => {
  const linkOf = async (userId: string) => secretOf((await makeLink(app.context, userId)).url);

  test('sets a password for whoever has none, and another one in place of a forgotten one; sessions end', async () => {
    const admin = await app.organization();
    const secret = await linkOf(admin.userId);
    expect(ok(await visitor().post('/signIn/link', { secret }), 200)).toMatchObject({
      purpose: 'PASSWORD',
      name: null,
    });
    const name = `n${newId()}`;
    const first = await redeem(secret, { name });
    expect(first.user_id).toBe(admin.userId);
    ok(
      await app.session(first.token).put(`/organization/${admin.organizationId}`, { name: newId(), plan: 'FREE' }),
      200,
    );
    ok(await visitor().post('/signIn/link', { secret }), 404);
    const again = await linkOf(admin.userId);
    expect(ok(await visitor().post('/signIn/link', { secret: again }), 200).name).toBe(name);
    const second = await redeem(again, { name: undefined, password: 'another horse battery' });
    expect(second).toMatchObject({ user_id: admin.userId, name });
    ok(await app.session(first.token).get('/account'), 401);
    ok(await signIn(name), 401);
    ok(await signIn(name, 'another horse battery'), 201);
  });

  test('is replaced by the next one, and over after a day', async () => {
    const { userId } = await app.organization();
    const first = await linkOf(userId);
    const second = await linkOf(userId);
    ok(await visitor().post('/signIn/link', { secret: first }), 404);
    ok(await visitor().post('/signIn/link', { secret: second }), 200);
    await app.db
      .updateTable('sign_in_link')
      .set({ expires_at: new Date(Date.now() - 1000) })
      .where('user_id', '=', userId)
      .execute();
    ok(await visitor().post('/signIn/link', { secret: second }), 404);
    ok(await visitor().post('/signIn/link/redeem', { secret: second, name: `n${newId()}`, password: PASSWORD }), 404);
  });

  test('is used once by many at once', async () => {
    const { userId } = await app.organization();
    const secret = await linkOf(userId);
    const answers = await Promise.all(
      Array.from({ length: 4 }, () =>
        visitor().post('/signIn/link/redeem', { secret, name: `n${newId()}`, password: PASSWORD }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 404, 404, 404]);
  });

  test('cannot be guessed: secrets of another kind or form are none, and attempts are counted', async () => {
    const { secret } = await invite(await app.organization());
    const attacker = visitor();
    const guesses = [secret.replace('qi_', 'ql_'), 'x', `${secret}x`];
    for (const guess of guesses) ok(await attacker.post('/signIn/link', { secret: guess }), 404);
    let status = 404;
    for (let times = 0; times < 60 && status === 404; times++)
      ({ status } = await attacker.post('/signIn/link', { secret: newId() }));
    expect(status).toBe(429);
  });
});

describe('what is over', () => {
  beforeEach(() => app.db.deleteFrom('sign_in_attempt').execute());

  test('is removed: sessions, links and counts', async () => {
    const admin = await app.organization();
    const made = await person(admin);
    const long = new Date(Date.now() - 40 * 24 * 3600_000);
    await makeLink(app.context, made.user_id);
    await signIn(made.name, 'wrong horse battery');
    await app.db.updateTable('sign_in_session').set({ expires_at: long }).where('id', '=', made.session_id).execute();
    await app.db.updateTable('sign_in_link').set({ expires_at: long }).where('user_id', '=', made.user_id).execute();
    await app.db.updateTable('sign_in_attempt').set({ started_at: long }).execute();
    const kept = ok<Signed>(await signIn(made.name), 201);
    await removeOldSignIns(app.platform);
    ok(await app.session(kept.token).get('/account'), 200);
    const left = await app.db.selectFrom('sign_in_session').select('id').where('user_id', '=', made.user_id).execute();
    expect(left).toEqual([{ id: kept.session_id }]);
    for (const table of ['sign_in_link', 'sign_in_attempt'] as const)
      expect(
        await app.db
          .selectFrom(table)
          .selectAll()
          .where(table === 'sign_in_link' ? ('expires_at' as never) : ('started_at' as never), '<=', long as never)
          .execute(),
      ).toEqual([]);
  });
});
