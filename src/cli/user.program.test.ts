import { describe, expect, test } from 'vitest';
import { runProgram, startService, useInstallation } from '#cli/testing.ts';
import { SoftAuthenticator } from '#test/harness/authenticator.ts';
import { useMailServers } from '#test/harness/mail-server.ts';

const { settings } = useInstallation('user');
const PASSWORD = 'correct horse battery';

test(
  'people are listed, get a link, and are signed out; who is meant is never guessed',
  { timeout: 180_000 },
  async () => {
    const site = 'http://localhost:8080';
    const { url } = await startService({ ...settings, QUARTERDECK_BASE_URL: site });
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
    expect(heading).toMatch(/^ID +SHOWN AS +SIGNS IN +LINKS GO TO +ORGANIZATIONS +LAST SEEN/);
    expect(only).toMatch(/First Administrator +not yet +My organization \(owner\) +never/);

    const linked = await run('link', 'administrator');
    expect(linked, linked.stderr).toMatchObject({ status: 0 });
    expect(linked.stdout).toMatch(/^http:\/\/\S+\/sign-in#ql_\S+\n$/);
    const secret = linked.stdout.trim().split('#')[1]!;
    const redeemed = await post('/signIn/link/redeem', { secret, name: 'grace', password: PASSWORD });
    expect(redeemed, JSON.stringify(redeemed.body)).toMatchObject({ status: 201 });
    const { token, user_id: id } = redeemed.body;
    expect((await run('list')).stdout).toMatch(/as grace \(sessions: 1\)/);

    const address = await run('address', 'grace', 'grace@example.com');
    expect(address).toMatchObject({ status: 0, stdout: 'Links for First Administrator go to grace@example.com.\n' });
    expect(address.stderr).toContain('No mail is sent: set QUARTERDECK_SMTP_URL');
    expect((await run('list')).stdout).toMatch(/as grace \(sessions: 1\) +grace@example\.com/);
    const wrong = await run('address', 'grace', 'Grace <grace@example.com>');
    expect(wrong).toMatchObject({ status: 1, stderr: expect.stringContaining('must be one e-mail address') });

    expect((await run('passkeys', 'grace')).stdout).toBe('First Administrator has no passkeys.\n');
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    const asked = await fetch(`${url}/account/passkey/options`, { method: 'POST', headers });
    const credential = new SoftAuthenticator(site).create((await asked.json()) as any);
    const added = await fetch(`${url}/account/passkey`, {
      method: 'POST',
      headers: { ...headers, cookie: asked.headers.get('set-cookie')!.split(';')[0]! },
      body: JSON.stringify({ name: 'telephone', credential }),
    });
    expect(added.status, await added.clone().text()).toBe(201);
    const { id: passkeyId } = (await added.json()) as { id: string };
    expect((await run('list')).stdout).toMatch(/as grace \(sessions: 1, passkeys: 1\)/);
    expect((await run('passkeys', 'grace')).stdout).toMatch(
      new RegExp(`^ID .*LAST USED *\n${passkeyId} +telephone +localhost +2\\S+ +never`),
    );
    const unknown = await run('passkeys', 'grace', '--remove', id);
    expect(unknown).toMatchObject({ status: 1, stderr: expect.stringContaining(`has no passkey "${id}"`) });
    const removed = await run('passkeys', 'grace', '--remove', passkeyId);
    expect(removed.stdout).toMatch(/^Removed the passkey telephone of First Administrator, and ended their sessions\./);
    expect((await get('/account', token)).status).toBe(401);
    const again = await post('/signIn', { name: 'grace', password: PASSWORD });
    const present = String(again.body.token);

    // Whoever is invited may take a name that somebody else is known by.
    const [organization] = (await get('/organization', present)).body.results;
    const invited = await post(`/organization/${organization.id}/inviteMember`, { email: 'a@b.example' }, present);
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
    expect(out.stdout).toMatch(
      /^Ended the sessions of First Administrator: 1\. Their password and passkeys are removed\./,
    );
    expect((await get('/account', present)).status).toBe(401);
    expect((await post('/signIn', { name: 'grace', password: PASSWORD })).status).toBe(401);
    expect((await get('/account', joined.body.token)).status).toBe(200);
  },
);

describe('mail test', () => {
  const { start } = useMailServers();
  const sendTest = (given: Record<string, string>) =>
    runProgram(['mail', 'test', 'ada@example.com'], { ...settings, ...given });

  test('says whether the server of the settings takes mail, and if not, why', { timeout: 120_000 }, async () => {
    const { port } = await start();
    const given = {
      QUARTERDECK_SMTP_URL: `smtp://127.0.0.1:${port}`,
      QUARTERDECK_SMTP_FROM: 'quarterdeck@example.com',
      QUARTERDECK_BASE_URL: 'https://qd.example.com',
    };
    // The server has a certificate that no other process trusts: on this machine it needs none.
    const plain = await start({ hideSTARTTLS: true, disabledCommands: ['AUTH', 'STARTTLS'] });
    const taken = await sendTest({ ...given, QUARTERDECK_SMTP_URL: `smtp://127.0.0.1:${plain.port}` });
    expect(taken, taken.stderr).toMatchObject({ status: 0 });
    expect(taken.stdout).toContain('took the mail to ada@example.com. Links lead to https://qd.example.com/sign-in.');
    expect(plain.mails).toHaveLength(1);
    const untrusted = await sendTest(given);
    expect(untrusted).toMatchObject({ status: 1, stderr: expect.stringContaining('The mail was not sent: ') });
    const none = await sendTest({});
    expect(none).toMatchObject({ status: 1, stderr: expect.stringContaining('set QUARTERDECK_SMTP_URL') });
  });
});
