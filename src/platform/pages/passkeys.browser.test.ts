import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { makeLink } from '#resources/sign-in/links.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { usePages } from '#test/harness/browser.ts';

const app = useApp();
const PASSWORD = 'correct horse battery';
const { open, heading } = usePages(app, { host: 'localhost', isBase: true });

/** Gives a page a device that keeps passkeys, such as a telephone with a finger; returns its id for further commands. */
async function addDevice(page: Page) {
  const session = await page.context().newCDPSession(page);
  await session.send('WebAuthn.enable');
  const options = {
    protocol: 'ctap2',
    transport: 'internal',
    hasResidentKey: true,
    hasUserVerification: true,
  } as const;
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: { ...options, isUserVerified: true, automaticPresenceSimulation: true },
  });
  return {
    setVerified: (isUserVerified: boolean) =>
      session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified }),
    credentials: async () => (await session.send('WebAuthn.getCredentials', { authenticatorId })).credentials,
    /** Replaces the device by another one of the same person. */
    remove: () => session.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId }),
  };
}

/** Invites in a session of an administrator. */
const invite = async (): Promise<string> => {
  const admin = await app.organization();
  const secret = new URL((await makeLink(app.context, admin.userId)).url).hash.slice(1);
  const given = { secret, name: `n${newId()}`, password: PASSWORD };
  const { token } = ok(await app.anonymous('POST', '/signIn/link/redeem', given), 201);
  const body = { email: `${newId()}@people.example` };
  const url = `/organization/${admin.organizationId}/inviteMember`;
  return ok(await app.session(token).post(url, body), 201).invitation_link;
};

const said = (page: Page) => expect.poll(() => page.locator('#message').textContent());
const click = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

/** Joins with a passkey in place of a password. */
const joinWithPasskey = async () => {
  const page = await open(await invite());
  const device = await addDevice(page);
  const name = `ada-${newId()}`;
  await page.getByLabel('Name to sign in with').fill(name);
  await click(page, 'Use a passkey instead of a password');
  await heading(page, `Signed in as ${name}`);
  return { page, device, name };
};

describe('in a browser with a device that keeps passkeys', () => {
  test('an invited person joins with a passkey, and signs in with it without typing', async () => {
    const { page, device, name } = await joinWithPasskey();
    const [made] = await device.credentials();
    expect(made).toMatchObject({ rpId: 'localhost', isResidentCredential: true, userName: name });
    await click(page, 'Sign out');
    await heading(page, 'Sign in');
    await click(page, 'Sign in with a passkey');
    await heading(page, `Signed in as ${name}`);
    await expect.poll(() => page.locator('#passkeys').textContent()).toContain('first passkey');
    expect(await page.locator('#passkeys').textContent()).toContain('last used');
    expect(await page.locator('#password-title').textContent()).toBe('A password besides');
    expect(await page.getByLabel('Present password').isVisible()).toBe(false);
  });

  test('a person adds a passkey of another device, removes the first, and cannot remove the last', async () => {
    const { page, device, name } = await joinWithPasskey();
    const add = async () => {
      await page.getByLabel('Name of another one').fill('key <b>ring</b>');
      await click(page, 'Add a passkey');
    };
    await add();
    await said(page).toBe('You have a passkey on this device already.');
    await device.remove();
    await addDevice(page);
    await add();
    await said(page).toBe('The passkey is added.');
    expect(await page.locator('#passkeys td:first-child').allTextContents()).toEqual([
      'first passkey',
      'key <b>ring</b>',
    ]);
    await page.locator('#passkeys').getByRole('button', { name: 'Rename' }).last().click();
    await page.getByLabel('Name of the passkey').fill('ring <i>2</i>');
    await click(page, 'Save');
    await said(page).toBe('The passkey is renamed.');
    expect(await page.locator('#passkeys td:first-child').last().textContent()).toBe('ring <i>2</i>');
    await page.locator('#passkeys').getByRole('button', { name: 'Remove' }).first().click();
    await said(page).toContain('The passkey is removed');
    expect(await page.locator('#passkeys tr').count()).toBe(1);
    await page.locator('#passkeys').getByRole('button', { name: 'Remove' }).click();
    await said(page).toContain('This is your last way to sign in');
    await click(page, 'Sign out');
    await click(page, 'Sign in with a passkey');
    await heading(page, `Signed in as ${name}`);
  });

  test('a passkey does not sign in for a person who is not verified, nor after it was removed here', async () => {
    const { page, device, name } = await joinWithPasskey();
    await page.getByLabel('New password').fill(PASSWORD);
    await click(page, 'Change it and end the other sessions');
    await said(page).toContain('The password is changed');
    await click(page, 'Sign out');
    await device.setVerified(false);
    await click(page, 'Sign in with a passkey');
    await said(page).toContain('The passkey was not used');
    await device.setVerified(true);
    await click(page, 'Sign in with a passkey');
    await heading(page, `Signed in as ${name}`);
    await page.locator('#passkeys').getByRole('button', { name: 'Remove' }).click();
    await said(page).toContain('The passkey is removed');
    await click(page, 'Sign out');
    await click(page, 'Sign in with a passkey');
    await said(page).toContain('The passkey is not valid here');
    await page.locator('#sign-in [name=name]').fill(name);
    await page.locator('#sign-in [name=password]').fill(PASSWORD);
    await page.locator('#sign-in button').click();
    await heading(page, `Signed in as ${name}`);
  });

  test('whoever gets a one-time link sets a passkey by it in place of a forgotten password', async () => {
    const admin = await app.organization();
    const page = await open((await makeLink(app.context, admin.userId)).url);
    await addDevice(page);
    await heading(page, 'Choose how you sign in');
    await click(page, 'Use a passkey instead of a password');
    await page.getByLabel('Name to sign in with').fill(`n${newId()}`);
    await click(page, 'Use a passkey instead of a password');
    await heading(page, 'Signed in as First Administrator');
    expect(new URL(page.url()).hash).toBe('');
    expect(await page.evaluate(() => document.cookie)).toBe('');
  });
});

test('at another address than that of the settings, such as an IP address, the page offers no passkeys', async () => {
  const page = await open('/sign-in', '127.0.0.1');
  await heading(page, 'Sign in');
  expect(await page.locator('#sign-in-passkey').isVisible()).toBe(false);
  const link = await open(await invite(), '127.0.0.1');
  await heading(link, 'Make an account');
  expect(await link.locator('#redeem-passkey').isVisible()).toBe(false);
});
