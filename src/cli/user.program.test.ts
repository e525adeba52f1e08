import { expect, test } from 'vitest';
import { runProgram, startService, useInstallation } from '#cli/testing.ts';

const { settings } = useInstallation('user');
const PASSWORD = 'correct horse battery';

test(
  'people are listed, get a link, and are signed out; who is meant is never guessed',
  { timeout: 180_000 },
  async () => {
    const { url } = await startService(settings);
    const run = async (...args: string[]) => runProgram(['user', ...args], settings);
    const post = async (at: string, body: object, token?: string) => {
      const headers = { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) };
      const answer = await fetch(url + at, { method: 'POST', headers, body: JSON.stringify(body) });
      return { status: answer.status, body: (await answer.json()) as any };
    };
    const get = async (at: string, token: string) => {
      const answer = await fetch(url + at, { headers: { authorization: `Bearer ${token}` } });
      return { status: answer.status, body: (await answer.json()) as any };
    };
    const list = await run('list');
    const [heading, only] = list.stdout.split('\n');
    expect(heading).toMatch(/^ID +SHOWN AS +SIGNS IN +ORGANIZATIONS +LAST SEEN/);
    expect(only).toMatch(/First Administrator +not yet +My organization \(owner\) +never/);

    const linked = await run('link', 'administrator');
    expect(linked, linked.stderr).toMatchObject({ status: 0 });
    expect(linked.stdout).toMatch(/^http:\/\/\S+\/sign-in#ql_\S+\n$/);
    const secret = linked.stdout.trim().split('#')[1]!;
    const redeemed = await post('/signIn/link/redeem', { secret, name: 'grace', password: PASSWORD });
    expect(redeemed, JSON.stringify(redeemed.body)).toMatchObject({ status: 201 });
    const { token, user_id: id } = redeemed.body;
    expect((await run('list')).stdout).toMatch(/as grace \(sessions: 1\)/);

    // Whoever is invited may take a name that somebody else is known by.
    const [organization] = (await get('/organization', token)).body.results;
    const invited = await post(`/organization/${organization.id}/inviteMember`, { email: 'a@b.example' }, token);
    const invitation = String(invited.body.invitation_link).split('#')[1]!;
    const joined = await post('/signIn/link/redeem', { secret: invitation, name: 'administrator', password: PASSWORD });
    expect(joined.status, JSON.stringify(joined.body)).toBe(201);
    const unclear = await run('sign-out', 'administrator');
    expect(unclear).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('There are several people administrator'),
    });
    expect(unclear.stderr).toContain(id);
    const nobody = await run('link', 'alan');
    expect(nobody).toMatchObject({ status: 1, stderr: expect.stringContaining('There is nobody alan') });

    const out = await run('sign-out', id, '--remove-password');
    expect(out.stdout).toMatch(/^Ended the sessions of First Administrator: 1\. Their password is removed\./);
    expect((await get('/account', token)).status).toBe(401);
    expect((await post('/signIn', { name: 'grace', password: PASSWORD })).status).toBe(401);
    expect((await get('/account', joined.body.token)).status).toBe(200);
  },
);
