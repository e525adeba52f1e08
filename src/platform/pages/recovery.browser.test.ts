import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { createPeopleMail } from '#resources/sign-in/index.ts';
import { makeLink } from '#resources/sign-in/links.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { usePages } from '#test/harness/browser.ts';
import { useMailServers } from '#test/harness/mail-server.ts';

const app = useApp({ QUARTERDECK_SMTP_URL: 'smtp://localhost', QUARTERDECK_SMTP_FROM: 'quarterdeck@example.com' });
const { start } = useMailServers();
const PASSWORD = 'correct horse battery';
const { open, heading } = usePages(app);

const choose = async (page: Page, name: string, password: string) => {
  await page.locator('#redeem [name=name]').fill(name);
  await page.locator('#redeem [name=password]').fill(password);
  await page.getByRole('button', { name: 'Save and sign in' }).click();
  await heading(page, /^Signed in as/);
};

test('an invited person joins by the mail, forgets the password, gets a mail to choose another, and changes the address', async () => {
  const { port, mails } = await start();
  app.platform.settings.smtpUrl = `smtp://localhost:${port}`;
  const [loop] = createPeopleMail(app.platform, newId(), { pollMs: 20 });
  loop!.start();
  try {
    const admin = await app.organization();
    const secret = new URL((await makeLink(app.context, admin.userId)).url).hash.slice(1);
    const given = { secret, name: `n${newId()}`, password: PASSWORD };
    const { token } = ok(await app.anonymous('POST', '/signIn/link/redeem', given), 201);
    const [name, email] = [`n${newId()}`, `${newId()}@people.example`];
    ok(await app.session(token).post(`/organization/${admin.organizationId}/inviteMember`, { email }), 201);
    await expect.poll(() => mails).toHaveLength(1);
    const joining = await open(/http\S+#qm_\S+/.exec(mails[0]!.body)![0]);
    await heading(joining, /^Join /);
    const told = await joining.locator('#redeem-address').textContent();
    expect(told).toBe(`Links for a forgotten password go to ${email}.`);
    await choose(joining, name, PASSWORD);

    const page = await open();
    await page.getByRole('button', { name: 'Forgotten your password?' }).click();
    await page.getByLabel('Address of your account').fill(email);
    await page.getByRole('button', { name: 'Send me a link' }).click();
    await heading(page, 'Sign in');
    expect(await page.locator('#message').textContent()).toContain('a link is on its way');
    await expect.poll(() => mails).toHaveLength(2);
    const recovering = await open(/http\S+#qr_\S+/.exec(mails[1]!.body)![0]);
    await heading(recovering, 'Choose your password');
    expect(await recovering.locator('#redeem [name=name]').inputValue()).toBe(name);
    expect(await recovering.locator('#redeem-address').isVisible()).toBe(false);
    await choose(recovering, name, 'another horse battery');
    await joining.reload();
    await heading(joining, 'Sign in');

    const wanted = `${newId()}@people.example`;
    await expect.poll(() => recovering.locator('#address-text').textContent()).toContain(email);
    await recovering.getByLabel('Another one', { exact: true }).fill(wanted);
    await recovering.getByRole('button', { name: 'Mail me a link there' }).click();
    await expect.poll(() => recovering.locator('#address-text').textContent()).toContain(`mailed to ${wanted}`);
    await expect.poll(() => mails).toHaveLength(3);
    const confirming = await open(/http\S+#qa_\S+/.exec(mails[2]!.body)![0]);
    await heading(confirming, 'Confirm your address');
    expect(await confirming.locator('#confirm-text').textContent()).toContain(`${name} go to ${wanted}`);
    await confirming.getByRole('button', { name: 'Confirm it' }).click();
    await expect.poll(() => confirming.locator('#message').textContent()).toContain(`go to ${wanted} now`);
    await recovering.reload();
    await expect
      .poll(() => recovering.locator('#address-text').textContent())
      .toBe(`Links for a forgotten password go to ${wanted}.`);
  } finally {
    await loop!.stop();
  }
});
