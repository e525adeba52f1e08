import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { takesPasswords } from '#platform/access/takes-passwords.ts';
import { makeLink } from '#resources/sign-in/links.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();
const PASSWORD = 'correct horse battery';

/** Runs work as a process that the operator has started without passwords, on the same database. */
const without = async (work: () => Promise<void>) => {
  const { settings } = app.platform;
  settings.passwords = 'false';
  try {
    await work();
  } finally {
    settings.passwords = 'auto';
  }
};

const redeem = async (userId: string) => {
  const secret = new URL((await makeLink(app.context, userId)).url).hash.slice(1);
  const body = { secret, name: `n${newId()}`, password: PASSWORD };
  return ok(await app.anonymous('POST', '/signIn/link/redeem', body), 201);
};

test('people have passwords where no identity provider is named, unless the operator says otherwise', () => {
  expect(takesPasswords({ passwords: 'auto', oidcIssuer: '' })).toBe(true);
  expect(takesPasswords({ passwords: 'auto', oidcIssuer: 'https://login.example.com' })).toBe(false);
  expect(takesPasswords({ passwords: 'true', oidcIssuer: 'https://login.example.com' })).toBe(true);
  expect(takesPasswords({ passwords: 'false', oidcIssuer: '' })).toBe(false);
});

describe('without passwords', () => {
  test('sessions, passwords, links and the page are refused; API tokens stay', async () => {
    const admin = await app.organization();
    const { token, name } = await redeem(admin.userId);
    const session = app.session(token);
    const secret = new URL((await makeLink(app.context, admin.userId)).url).hash.slice(1);
    const body = { email: `${newId()}@people.example` };
    const url = `/organization/${admin.organizationId}/inviteMember`;
    const invited = new URL(ok(await session.post(url, body), 201).invitation_link).hash.slice(1);
    await without(async () => {
      ok(await session.get('/account'), 401);
      ok(await app.anonymous('POST', '/signIn', { name, password: PASSWORD }), 403);
      for (const text of [secret, invited]) ok(await app.anonymous('POST', '/signIn/link', { secret: text }), 403);
      const given = { secret: invited, name: `n${newId()}`, password: PASSWORD };
      ok(await app.anonymous('POST', '/signIn/link/redeem', given), 403);
      const asked = ok(await app.anonymous('POST', '/signIn/passkey/options'), 403);
      expect(asked.message).toContain('takes no passwords');
      ok(await app.anonymous('GET', '/sign-in'), 404);
      ok(await admin.get('/account'), 200);
    });
    ok(await session.get('/account'), 200);
  });
});

test('an open stream ends soon after its session', async () => {
  const admin = await app.organization();
  const { token, session_id: id } = await redeem(admin.userId);
  const url = await app.server.listen({ host: '127.0.0.1', port: 0 });
  const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
  const answer = await fetch(`${url}/organization/${admin.organizationId}/eventStream`, { headers });
  expect(answer.status).toBe(200);
  const rest = answer.text();
  ok(await app.session(token).delete(`/account/session/${id}`), 204);
  expect(await rest).toContain('event: end');
});
