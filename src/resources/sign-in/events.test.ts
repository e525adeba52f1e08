import { afterEach, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { enterReadOnly, leaveReadOnly, removeGuards } from '#platform/installation/index.ts';
import { makeLinkFor, signOut } from '#resources/sign-in/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp({ QUARTERDECK_TRUSTED_PROXIES: '127.0.0.1/32' });
const PASSWORD = 'correct horse battery';
const ADDRESS = '2001:db8::7';
const from = { 'x-forwarded-for': ADDRESS, 'user-agent': 'browser' };
afterEach(() => app.db.deleteFrom('sign_in_attempt').execute());

interface Event {
  event_type: string;
  sub_target_type: string | null;
  target_name: string;
  triggered_by: string;
  user_agent: string;
  change: any;
  original_change: any;
}

/** Lists the events of a person in an organization, the newest first. */
const eventsOf = async (reader: Actor, userId: string): Promise<Event[]> => {
  const url = `/organization/${reader.organizationId}/events?targetId=${userId}&pageSize=100`;
  const { events } = ok(await reader.get(url), 200);
  return events.map((event: Event) => ({
    ...event,
    change: event.change && JSON.parse(event.change),
    original_change: event.original_change && JSON.parse(event.original_change),
  }));
};

const post = (url: string, body: object) => app.anonymous('POST', url, body, from);
const signIn = (name: string, password = PASSWORD) => post('/signIn', { name, password });

/** Gives the administrator of an organization a name and a password. */
const person = async (admin: Actor) => {
  const { url } = await makeLinkFor(app.context, admin.userId);
  const name = `n${newId()}`;
  const given = { secret: new URL(url).hash.slice(1), name, password: PASSWORD };
  return { name, session: app.session(ok(await post('/signIn/link/redeem', given), 201).token) };
};

describe('the events of an organization tell of its people', () => {
  test('that they signed in and out, from where and with which program', async () => {
    const admin = await app.organization();
    const { name } = await person(admin);
    const { token, session_id: id } = ok(await signIn(name), 201);
    const [begun] = await eventsOf(admin, admin.userId);
    expect(begun).toMatchObject({
      event_type: 'CREATE',
      sub_target_type: 'SSO',
      target_name: 'First Administrator',
      triggered_by: 'First Administrator',
      user_agent: 'browser',
      change: { session_id: id, address: ADDRESS },
    });
    ok(await app.session(token).delete(`/account/session/${id}`), 204);
    expect((await eventsOf(admin, admin.userId))[0]).toMatchObject({
      event_type: 'DELETE',
      sub_target_type: 'SSO',
      triggered_by: 'First Administrator',
      original_change: { session_id: id, address: ADDRESS },
    });
  });

  test('that a wrong password was given, by whom is not known; a name that nobody has leaves no event', async () => {
    const admin = await app.organization();
    const { name } = await person(admin);
    const count = (await eventsOf(admin, admin.userId)).length;
    ok(await signIn(`n${newId()}`), 401);
    ok(await signIn(name, 'wrong horse battery'), 401);
    await expect.poll(async () => (await eventsOf(admin, admin.userId)).length).toBe(count + 1);
    const [failed] = await eventsOf(admin, admin.userId);
    expect(failed).toMatchObject({
      event_type: 'UPDATE',
      sub_target_type: 'SSO',
      target_name: 'First Administrator',
      triggered_by: 'unknown',
      user_agent: 'browser',
      change: { sign_in: 'failed', reason: 'wrong password', address: ADDRESS },
    });
    expect(JSON.stringify(failed)).not.toContain('wrong horse');
  });

  test('that a password was set or changed, a link was made, and sessions were ended by the operator', async () => {
    const admin = await app.organization();
    const { session } = await person(admin);
    const body = { current_password: PASSWORD, password: 'another horse battery' };
    ok(await session.put('/account/password', body), 204);
    await signOut(app.context, admin.userId, true);
    const told = (await eventsOf(admin, admin.userId)).map(({ change }) => change);
    expect(told).toEqual([
      { sessions: 'ended by the operator', password: 'removed by the operator' },
      { password: 'changed by themselves' },
      expect.objectContaining({ password: 'set by a one-time link' }),
      { password: 'a one-time link was made' },
    ]);
  });

  test('in each of their organizations, and in no other', async () => {
    const [first, second, other] = [await app.organization(), await app.organization(), await app.organization()];
    const { name } = await person(first);
    const role = await app.db
      .selectFrom('role')
      .select('id')
      .where('organization_id', '=', second.organizationId)
      .where('name', '=', 'viewer')
      .executeTakeFirstOrThrow();
    await app.db
      .insertInto('member')
      .values({ organization_id: second.organizationId, user_id: first.userId, role_id: role.id })
      .execute();
    ok(await signIn(name), 201);
    for (const reader of [first, second])
      expect((await eventsOf(reader, first.userId))[0]).toMatchObject({ event_type: 'CREATE', sub_target_type: 'SSO' });
    expect(await eventsOf(other, first.userId)).toEqual([]);
  });
});

test('people sign in and out while the installation is read-only, of which no event can be written', async () => {
  const admin = await app.organization();
  const { name } = await person(admin);
  const count = (await eventsOf(admin, admin.userId)).length;
  await app.db.transaction().execute((db) => enterReadOnly(db, new Date()));
  try {
    const { token, session_id: id } = ok(await signIn(name), 201);
    ok(await signIn(name, 'wrong horse battery'), 401);
    ok(await app.session(token).delete(`/account/session/${id}`), 204);
  } finally {
    await leaveReadOnly(app.db, 0);
    await removeGuards(app.db);
  }
  expect(await eventsOf(admin, admin.userId)).toHaveLength(count);
});
