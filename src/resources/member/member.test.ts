import { afterAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { guideOf } from '#resources/member/invitations.ts';
import { ok, useApp, type Actor, type Caller } from '#test/harness/app.ts';
import { startIssuer } from '#test/harness/issuer.ts';

const issuer = await startIssuer(['ES256']);
const app = useApp(issuer.settings);
afterAll(() => issuer.close());

interface Person extends Caller {
  id: string;
  email: string;
}

const person = async (): Promise<Person> => {
  const email = `${newId()}@people.example`;
  const token = await issuer.sign(
    { sub: newId(), email, email_verified: true, given_name: 'Ada' },
    { algorithm: 'ES256' },
  );
  const caller = app.session(token);
  return { ...caller, email, id: ok(await caller.get('/account'), 200).id };
};

const urlOf = (admin: Actor) => `/organization/${admin.organizationId}`;

const roleIds = async (admin: Actor): Promise<Record<string, string>> => {
  const { results } = ok(await admin.get(`${urlOf(admin)}/availableRole`), 200);
  return Object.fromEntries(results.map((role: { id: string; name: string }) => [role.name, role.id]));
};

/** Invites the person and lets them accept. */
const join = async (admin: Actor, who: Person, role = 'VIEWER') => {
  const { id } = ok(await admin.post(`${urlOf(admin)}/inviteMember`, { email: who.email, role }), 201);
  ok(await who.post(`${urlOf(admin)}/inviteMember/${id}`), 201);
};

const eventsOf = (admin: Actor, targetId: string) =>
  app.db
    .selectFrom('audit_event')
    .select(['event_type', 'target_type', 'sub_target_type', 'target_name'])
    .where('organization_id', '=', admin.organizationId)
    .where('target_id', '=', targetId)
    .orderBy('id')
    .execute();

describe('an invitation', () => {
  test('is answered in full, seen by whom it is for, and makes them a member at once', async () => {
    const [admin, ada] = [await app.organization(), await person()];
    const email = ada.email.toUpperCase();
    const invitation = ok(await admin.post(`${urlOf(admin)}/inviteMember`, { email, role: 'DEVELOPER' }), 201);
    expect(invitation).toMatchObject({
      email,
      role: 'DEVELOPER',
      role_name: 'devops',
      invitation_status: 'PENDING',
      inviter: 'First Administrator',
      invitation_link: expect.stringContaining(invitation.id),
    });
    const url = `${urlOf(admin)}/inviteMember/${invitation.id}`;
    expect(ok(await ada.get(url), 200)).toEqual(invitation);
    ok(await ada.get(urlOf(admin)), 404);
    expect(ok(await ada.post(url), 201)).toEqual(invitation);
    ok(await ada.post(`${urlOf(admin)}/project`, { name: 'p' }), 201);
    const { results } = ok(await ada.get(`${urlOf(admin)}/member`), 200);
    expect(results[1]).toMatchObject({
      id: ada.id,
      email: ada.email,
      name: 'Ada',
      role: 'DEVELOPER',
      role_name: 'devops',
    });
    expect(ok(await admin.get(`${urlOf(admin)}/inviteMember`), 200).results).toEqual([]);
    ok(await ada.post(url), 404);
    expect((await eventsOf(admin, invitation.id)).map((event) => event.event_type)).toEqual(['CREATE', 'ACCEPT']);
  });

  test('is not there for anybody else, and nobody else can accept it, not even its inviter', async () => {
    const [admin, ada, eve] = [await app.organization(), await person(), await person()];
    const { id } = ok(await admin.post(`${urlOf(admin)}/inviteMember`, { email: ada.email }), 201);
    const url = `${urlOf(admin)}/inviteMember/${id}`;
    ok(await eve.get(url), 404);
    ok(await eve.post(url), 404);
    ok(await admin.get(url), 200);
    ok(await admin.post(url), 403);
    ok(await eve.delete(url), 404);
    const other = await app.organization();
    ok(await ada.post(`${urlOf(other)}/inviteMember/${id}`), 404);
  });

  test('is not for whom the provider has not verified', async () => {
    const admin = await app.organization();
    const email = `${newId()}@people.example`;
    const { id } = ok(await admin.post(`${urlOf(admin)}/inviteMember`, { email }), 201);
    for (const email_verified of [false, null, 'true']) {
      const caller = app.session(await issuer.sign({ sub: newId(), email, email_verified }, { algorithm: 'ES256' }));
      ok(await caller.put('/account', { communication_email: email }), 200);
      ok(await caller.post(`${urlOf(admin)}/inviteMember/${id}`), 404);
    }
  });

  test('has a link that answers anybody where to sign in and what accepts it, the same for every id', async () => {
    const admin = await app.organization();
    const { id, invitation_link } = ok(await admin.post(`${urlOf(admin)}/inviteMember`, { email: 'b@c.example' }), 201);
    const { pathname, search } = new URL(invitation_link);
    const guide = await app.anonymous('GET', pathname + search);
    const acceptWith = `POST ${urlOf(admin)}/inviteMember/${id}`;
    expect(ok(guide, 200)).toEqual({
      message: expect.stringContaining(acceptWith),
      sign_in_at: guide.body.sign_in_at,
      accept_with: acceptWith,
    });
    expect(guide.body.message).toContain(guide.body.sign_in_at ?? 'QUARTERDECK_OIDC_ISSUER');
    const unknown = await app.anonymous('GET', pathname + search.replaceAll(id, newId()));
    expect(Object.keys(ok(unknown, 200))).toEqual(Object.keys(guide.body));
    ok(await app.anonymous('GET', `${pathname}?organization=x`), 400);
  });

  test('explains without passwords and an identity provider what an administrator can give instead: a token with the role, in their own name', async () => {
    const admin = await app.organization();
    const { id, role_id } = ok(
      await admin.post(`${urlOf(admin)}/inviteMember`, { email: 'd@c.example', role: 'VIEWER' }),
      201,
    );
    const ids = { organization: admin.organizationId, inviteToken: id };
    const { message, sign_in_at } = guideOf(
      { settings: { ...app.platform.settings, oidcIssuer: '', passwords: 'false' as const } },
      ids,
    );
    expect(sign_in_at).toBeNull();
    for (const part of ['QUARTERDECK_OIDC_ISSUER', `POST ${urlOf(admin)}/apiToken`, 'role_id', 'not for you'])
      expect(message).toContain(part);
    // The way that it names works, and does what it says.
    const made = ok(await admin.post(`${urlOf(admin)}/apiToken`, { name: 'for d@c.example', role_id }), 201);
    const authorization = { authorization: `Token ${made.token}` };
    ok(await app.anonymous('GET', urlOf(admin), undefined, authorization), 200);
    ok(await app.anonymous('PUT', urlOf(admin), { name: 'other', plan: 'FREE' }, authorization), 403);
    const own = ok(await admin.get('/account'), 200);
    expect(ok(await app.anonymous('GET', '/account', undefined, authorization), 200)).toEqual(own);
  });

  test('ends after its days, and can be sent anew then', async () => {
    const [admin, ada] = [await app.organization(), await person()];
    const { id } = ok(await admin.post(`${urlOf(admin)}/inviteMember`, { email: ada.email }), 201);
    await app.db
      .updateTable('member_invitation')
      .set({ expires_at: new Date(0) })
      .where('id', '=', id)
      .execute();
    expect(ok(await ada.get(`${urlOf(admin)}/inviteMember/${id}`), 200).invitation_status).toBe('EXPIRED');
    expect(ok(await ada.post(`${urlOf(admin)}/inviteMember/${id}`), 409).message).toContain('ask First Administrator');
    await join(admin, ada);
  });

  test('to one address at the same time is one 201 and one 409, and to a member 409', async () => {
    const [admin, ada] = [await app.organization(), await person()];
    const answers = await Promise.all(
      [ada.email, ada.email.toUpperCase()].map((email) => admin.post(`${urlOf(admin)}/inviteMember`, { email })),
    );
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, 409]);
    const { id } = answers.find((answer) => answer.status === 201)!.body;
    const accepted = await Promise.all([1, 2].map(() => ada.post(`${urlOf(admin)}/inviteMember/${id}`)));
    expect(accepted.filter((answer) => answer.status === 201)).toHaveLength(1);
    ok(await admin.post(`${urlOf(admin)}/inviteMember`, { email: ada.email }), 409);
  });

  test('is refused for what is no address, no role of the organization, or a contradiction', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const url = `${urlOf(admin)}/inviteMember`;
    const email = 'a@b.example';
    ok(await admin.post(url, { email: 'nonsense' }), 400);
    for (const role_id of [newId(), (await roleIds(other)).viewer])
      expect(ok(await admin.post(url, { email, role_id }), 400).errors[0].field).toBe('role_id');
    ok(await admin.post(url, { email, role_id: (await roleIds(admin)).viewer, role: 'ADMIN' }), 400);
    ok(await (await admin.withScope('WRITE')).post(url, { email }), 403);
  });

  test('can be withdrawn', async () => {
    const [admin, ada] = [await app.organization(), await person()];
    const { id } = ok(await admin.post(`${urlOf(admin)}/inviteMember`, { email: ada.email }), 201);
    ok(await admin.delete(`${urlOf(admin)}/inviteMember/${id}`), 204);
    ok(await ada.post(`${urlOf(admin)}/inviteMember/${id}`), 404);
  });
});

describe("a member's role", () => {
  test('holds from the next request on, for their tokens too', async () => {
    const [admin, ada] = [await app.organization(), await person()];
    await join(admin, ada, 'ADMIN');
    const { token } = ok(await ada.post(`${urlOf(admin)}/apiToken`, { name: 'ci', scope: 'ADMIN' }), 201);
    const withToken = (path: string, body: unknown) =>
      app.anonymous('POST', path, body, { authorization: `Token ${token}` });
    ok(await withToken(`${urlOf(admin)}/project`, { name: 'p' }), 201);
    const roles = await roleIds(admin);
    const change = { user_id: ada.id, role_id: roles.viewer };
    expect(ok(await admin.put(`${urlOf(admin)}/member`, change), 200)).toMatchObject({ id: ada.id, role: 'VIEWER' });
    ok(await ada.post(`${urlOf(admin)}/project`, { name: 'q' }), 403);
    ok(await withToken(`${urlOf(admin)}/project`, { name: 'q' }), 403);
    ok(await ada.get(urlOf(admin)), 200);
    expect((await eventsOf(admin, ada.id)).at(-1)).toMatchObject({
      event_type: 'UPDATE',
      sub_target_type: 'MEMBER_ROLE',
    });
  });

  test('is changed by administrators only, and that of owners by owners only', async () => {
    const [admin, ada, bob] = [await app.organization(), await person(), await person()];
    await join(admin, ada, 'ADMIN');
    await join(admin, bob);
    const roles = await roleIds(admin);
    const url = `${urlOf(admin)}/member`;
    ok(await bob.put(url, { user_id: bob.id, role_id: roles.admin }), 403);
    ok(await ada.put(url, { user_id: bob.id, role_id: roles.owner }), 403);
    ok(await ada.put(url, { user_id: admin.userId, role_id: roles.viewer }), 403);
    ok(await ada.post(`${urlOf(admin)}/inviteMember`, { email: 'x@y.example', role: 'OWNER' }), 403);
    ok(await ada.call('DELETE', url, { user_id: admin.userId }), 403);
    ok(await ada.post(`${urlOf(admin)}/transferOwnership`, { user_id: ada.id }), 403);
    ok(await ada.put(url, { user_id: bob.id, role_id: roles.devops }), 200);
    ok(await admin.put(url, { user_id: bob.id, role_id: roles.owner }), 200);
  });

  test('names a member and a role of the organization', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const roles = await roleIds(admin);
    for (const [body, field] of [
      [{ user_id: other.userId, role_id: roles.viewer }, 'user_id'],
      [{ user_id: 'nobody', role_id: roles.viewer }, 'user_id'],
      [{ user_id: admin.userId, role_id: (await roleIds(other)).viewer }, 'role_id'],
    ] as const)
      expect(ok(await admin.put(`${urlOf(admin)}/member`, body), 400).errors[0].field).toBe(field);
  });
});

describe('the last owner', () => {
  test('stays', async () => {
    const admin = await app.organization();
    const roles = await roleIds(admin);
    ok(await admin.call('DELETE', `${urlOf(admin)}/member`, { user_id: admin.userId }), 409);
    ok(await admin.put(`${urlOf(admin)}/member`, { user_id: admin.userId, role_id: roles.admin }), 409);
    expect(ok(await admin.get(urlOf(admin)), 200).owner).toBe(admin.userId);
  });

  test('stays also when two owners unmake each other at the same time', async () => {
    const [admin, ada] = [await app.organization(), await person()];
    await join(admin, ada, 'OWNER');
    const answers = await Promise.all([
      admin.call('DELETE', `${urlOf(admin)}/member`, { user_id: ada.id }),
      ada.call('DELETE', `${urlOf(admin)}/member`, { user_id: admin.userId }),
    ]);
    expect(answers.filter((answer) => answer.status === 204)).toHaveLength(1);
    const { results } = ok(await (answers[0].status === 204 ? admin : ada).get(`${urlOf(admin)}/member`), 200);
    expect(results).toMatchObject([{ role: 'OWNER' }]);
  });
});

describe('a member who is removed', () => {
  test('is out from the next request on, with their tokens and invitations', async () => {
    const [admin, ada] = [await app.organization(), await person()];
    await join(admin, ada, 'ADMIN');
    const { token } = ok(await ada.post(`${urlOf(admin)}/apiToken`, { name: 'ci', scope: 'READ' }), 201);
    ok(await ada.post(`${urlOf(admin)}/inviteMember`, { email: 'second-account@ada.example', role: 'ADMIN' }), 201);
    ok(await admin.call('DELETE', `${urlOf(admin)}/member`, { user_id: ada.id }), 204);
    ok(await ada.get(urlOf(admin)), 404);
    ok(await app.anonymous('GET', urlOf(admin), undefined, { authorization: `Token ${token}` }), 401);
    expect(ok(await admin.get(`${urlOf(admin)}/inviteMember`), 200).results).toEqual([]);
    const names = ok(await admin.get(`${urlOf(admin)}/apiToken`), 200).results.map((one: { name: string }) => one.name);
    expect(names).not.toContain('ci');
    expect((await eventsOf(admin, ada.id)).at(-1)).toMatchObject({ event_type: 'DELETE', target_name: 'Ada' });
    ok(await admin.call('DELETE', `${urlOf(admin)}/member`, { user_id: ada.id }), 400);
  });
});

describe('ownership', () => {
  test('goes to another member, and the former owner administers', async () => {
    const [admin, ada] = [await app.organization(), await person()];
    await join(admin, ada);
    const url = `${urlOf(admin)}/transferOwnership`;
    ok(await admin.post(url, { user_id: newId() }), 400);
    ok(await admin.post(url, { user_id: admin.userId }), 400);
    ok(await admin.post(url, { user_id: ada.id }), 204);
    expect(ok(await ada.get(urlOf(admin)), 200).owner).toBe(ada.id);
    const { results } = ok(await ada.get(`${urlOf(admin)}/member`), 200);
    expect(results.map((member: { role: string }) => member.role)).toEqual(['ADMIN', 'OWNER']);
    ok(await admin.post(url, { user_id: admin.userId }), 403);
    expect((await eventsOf(admin, ada.id)).at(-1)).toMatchObject({ sub_target_type: 'TRANSFER_OWNERSHIP' });
  });
});
