import { forbidden, invalidField } from '#kernel/errors.ts';
import { takesPasswords } from '#platform/access/takes-passwords.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { isMailAddress } from '#platform/mail-client/index.ts';
import { enqueueMail, sendsMail, type MailWriter } from '#platform/mail-queue/index.ts';
import { signInPage } from '#platform/settings/address.ts';
import { limitRecoveries, type Visitor } from '#resources/sign-in/attempts.ts';
import { addressOfRecovery, makeRecoveryLink } from '#resources/sign-in/links.ts';
import * as queries from '#resources/sign-in/queries.ts';
import { tell } from '#resources/sign-in/tell.ts';

/** Request that is answered later, so that its answer and its time do not tell whether the address is known. */
export const RECOVERY_REQUEST = 'RECOVERY_REQUEST';
/** Mail with a link for a forgotten password. */
export const RECOVERY_MAIL = 'RECOVERY';

/** People who get a link for one address. */
const MOST_PEOPLE = 5;

/** Stores the request for a mail with a link. The answer is the same for every address. Throws 403 where no mail is sent, 429 for too many. */
export async function requestRecovery(context: Context, email: string, visitor: Visitor): Promise<void> {
  const { settings } = context;
  if (!takesPasswords(settings))
    throw forbidden('This installation takes no passwords (QUARTERDECK_PASSWORDS): sign in at its identity provider.');
  if (!sendsMail(settings))
    throw forbidden(
      'This installation sends no mail (QUARTERDECK_SMTP_URL): ask whoever operates it for a link, which quarterdeck user link makes.',
    );
  const recipient = email.trim();
  if (!isMailAddress(recipient)) throw invalidField('email', 'must be one e-mail address such as ada@example.com');
  await limitRecoveries(context, visitor, recipient);
  await inTransaction(context, (inside) => enqueueMail(inside, RECOVERY_REQUEST, { subjectId: null, recipient }));
}

/** Makes the links of the people with an address, and a mail for each. Nothing is sent to an address that is not known. */
export const answerRequest: MailWriter = async (context, { recipient }) => {
  if (!takesPasswords(context.settings)) return null;
  for (const { user_id: userId } of await queries.listByEmail(context.db, recipient, MOST_PEOPLE))
    await inTransaction(context, async (inside) => {
      const present = await queries.lockByUser(inside.db, userId);
      // The stored address: another spelling of it could be read elsewhere.
      if (present?.email?.toLowerCase() !== recipient.toLowerCase()) return;
      const { id, isNew } = await makeRecoveryLink(inside, userId);
      if (isNew) await tell(inside, userId, { password: 'a link for a forgotten password was mailed' });
      await enqueueMail(inside, RECOVERY_MAIL, { subjectId: id, recipient: present.email });
    });
  return null;
};

/** Writes the mail with a link; null where it was used or is over meanwhile. */
export const writeRecovery: MailWriter = async (context, { subjectId, recipient }) => {
  const link = subjectId === null ? undefined : await queries.findRecoveryLink(context.db, subjectId);
  if (!link || link.expires_at <= context.clock.now() || link.email !== recipient) return null;
  const end = link.expires_at.toISOString().slice(11, 16);
  return {
    subject: 'Your password',
    text: `A new password or passkey was asked for at ${signInPage(context.settings)} for the account ${link.name}.

Open this link to choose it, until ${end} UTC. It works once, and ends your sessions:

${addressOfRecovery(context, link.id)}

If you did not ask for it, do nothing: you sign in as before.
`,
  };
};
