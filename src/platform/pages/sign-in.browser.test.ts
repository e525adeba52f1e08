import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { makeLink } from '#resources/sign-in/links.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { usePages } from '#test/harness/browser.ts';

const app = useApp();
const PASSWORD = 'correct horse battery';
const { open, heading, problems } = usePages(app);

/** Invites in a session of the administrator, as a token would send no link. */
const invite = async (admin: Actor, email = `${newId()}@people.example`): Promise<string> => {
  const secret = new URL((await makeLink(app.context, admin.userId)).url).hash.slice(1);
  const given = { secret, name: `n${newId()}`, password: PASSWORD };
  const { token } = ok(await app.anonymous('POST', '/signIn/link/redeem', given), 201);
  const body = { email, role: 'DEVELOPER' };
  return ok(await app.session(token).post(`/organization/${admin.organizationId}/inviteMember`, body), 201)
    .invitation_link;
};

/** Fills the form of a link, and waits for the account. */
const choose = async (page: Page, name: string, password = PASSWORD) => {
  await page.locator('#redeem [name=name]').fill(name);
  await page.locator('#redeem [name=password]').fill(password);
  await page.getByRole('button', { name: 'Save and sign in' }).click();
  await heading(page, /^Signed in as/);
};

const signIn = async (page: Page, name: string, password = PASSWORD) => {
  await page.locator('#sign-in [name=name]').fill(name);
  await page.locator('#sign-in [name=password]').fill(password);
  await page.locator('#sign-in button').click();
};

describe('in a browser', () => {
  test('an invited person joins, makes a token for a program, and signs out', async () => {
    const admin = await app.organization(`Acme <b>${newId()}</b>`);
    const page = await open(await invite(admin, 'ada@people.example'));
    await heading(page, /^Join Acme <b>/);
    expect(await page.locator('#join-text').textContent()).toBe(
      'First Administrator invites ada@people.example as devops.',
    );
    expect(await page.getByLabel('Name to sign in with').inputValue()).toBe('ada@people.example');
    const name = `ada-${newId()}`;
    await choose(page, name);
    expect(new URL(page.url()).hash).toBe('');
    expect(await page.locator('#organizations li').allTextContents()).toEqual([expect.stringContaining('Acme <b>')]);
    await page.locator('#token [name=name]').fill('laptop');
    await page.getByLabel('It may').selectOption('READ');
    await page.getByRole('button', { name: 'Create a token' }).click();
    // A developer may make no tokens: the page says what the API says.
    await expect.poll(() => page.locator('#message').textContent()).toContain('apiToken.edit');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await heading(page, 'Sign in');
    expect(await page.evaluate(() => JSON.stringify(sessionStorage))).toBe('{}');
    await signIn(page, name, 'wrong horse battery');
    await expect.poll(() => page.locator('#message').textContent()).toBe('The name or the password is wrong.');
    await signIn(page, name);
    await heading(page, `Signed in as ${name}`);
  });

  test('whoever runs the installation sets a password by a link, and makes a token that works', async () => {
    const admin = await app.organization();
    const page = await open((await makeLink(app.context, admin.userId)).url);
    await heading(page, 'Choose your password');
    await choose(page, `n${newId()}`);
    await page.locator('#token [name=name]').fill('laptop');
    await page.getByLabel('It may').selectOption('WRITE');
    await page.getByRole('button', { name: 'Create a token' }).click();
    await expect.poll(() => page.locator('#made-token-text').textContent()).toMatch(/^qd_/);
    const token = (await page.locator('#made-token-text').textContent())!;
    const url = `/organization/${admin.organizationId}/project`;
    ok(await app.anonymous('POST', url, { name: 'p' }, { authorization: `Token ${token}` }), 201);
  });

  test('sessions elsewhere are ended one by one, and all of them by another password', async () => {
    const admin = await app.organization();
    const name = `n${newId()}`;
    const first = await open(await invite(admin));
    await choose(first, name);
    const [second, third] = [await open(), await open()];
    for (const page of [second, third]) {
      await signIn(page, name);
      await heading(page, `Signed in as ${name}`);
    }
    await first.reload();
    await heading(first, `Signed in as ${name}`);
    await first.getByRole('button', { name: 'End', exact: true }).first().click();
    await expect.poll(() => first.locator('#sessions tr').count()).toBe(2);
    await third.reload();
    await heading(third, 'Sign in');
    await first.getByLabel('Present password').fill(PASSWORD);
    await first.getByLabel('New password').fill('another horse battery');
    await first.getByRole('button', { name: 'Change it' }).click();
    await expect.poll(() => first.locator('#message').textContent()).toContain('The password is changed');
    await second.reload();
    await heading(second, 'Sign in');
    await signIn(second, name, 'another horse battery');
    await heading(second, `Signed in as ${name}`);
  });

  test('whoever has an account joins another organization with it, after signing in', async () => {
    const [acme, other] = [await app.organization('Acme'), await app.organization(`Other ${newId()}`)];
    const name = `n${newId()}`;
    const page = await open(await invite(acme));
    await choose(page, name);
    const joining = await open(await invite(other));
    await joining.getByRole('button', { name: 'Sign in to join' }).click();
    await signIn(joining, name);
    await joining.getByRole('button', { name: `Join as ${name}` }).click();
    await heading(joining, `Signed in as ${name}`);
    await expect.poll(() => joining.locator('#organizations li').count()).toBe(2);
  });

  test('without a mail server the page offers no mail for a forgotten password', async () => {
    const page = await open();
    await heading(page, 'Sign in');
    expect(await page.locator('#forgotten-elsewhere').isVisible()).toBe(true);
    expect(await page.locator('#forgotten').isVisible()).toBe(false);
  });

  test('a link that is over says so, and the page can be put into no frame and loads nothing else', async () => {
    const page = await open('/sign-in#qi_nothing');
    await heading(page, 'Sign in');
    expect(await page.locator('#message').textContent()).toContain('The link is not valid');
    const { headers } = await app.anonymous('GET', '/sign-in');
    expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(headers['content-security-policy']).not.toContain('unsafe');
    const outside = page.evaluate(() =>
      fetch('https://example.com/').then(
        () => 'loaded',
        (error) => String(error),
      ),
    );
    expect(await outside).toContain('TypeError');
    // What the policy forbids is noted in the console.
    expect(problems.splice(0).join()).toContain('Content Security Policy');
  });
});
