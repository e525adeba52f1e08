import { print } from '#cli/print.ts';
import { isMailAddress } from '#platform/mail-client/index.ts';
import { sendNow, sendsMail } from '#platform/mail-queue/index.ts';
import { signInPage } from '#platform/settings/address.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Sends a mail through the server of the settings. Throws an Error that says why the server did not take it. */
export async function testMailCommand(settings: Settings, address: string): Promise<void> {
  if (!sendsMail(settings))
    throw new Error(
      'No mail is sent: set QUARTERDECK_SMTP_URL, such as smtp://user@smtp.example.com:587, and QUARTERDECK_SMTP_FROM.',
    );
  if (!isMailAddress(address)) throw new Error(`${address} must be one e-mail address such as ada@example.com.`);
  const text = `Mail to people works. Links in it lead to ${signInPage(settings)}.\n`;
  try {
    await sendNow(settings, address, { subject: 'Test of Quarterdeck', text });
  } catch (error) {
    throw new Error(`The mail was not sent: ${(error as Error).message}`, { cause: error });
  }
  print(`The server took the mail to ${address}. Links lead to ${signInPage(settings)}.`);
}
