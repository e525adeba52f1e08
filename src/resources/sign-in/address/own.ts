import { forbidden, invalidField, notFound, unauthenticated } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Principal } from '#platform/access/principal.ts';
import { deriveSecretText } from '#platform/access/secret-text.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { isMailAddress } from '#platform/mail-client/index.ts';
import { enqueueMail, sendsMail } from '#platform/mail-queue/index.ts';
import { ADDRESS_MAIL, ADDRESS_PREFIX } from '#resources/sign-in/address/mails.ts';
import { deleteAddressLinkOf, findAddressLinkOf, saveAddressLink } from '#resources/sign-in/address/queries.ts';
import { limitRecoveries, type Visitor } from '#resources/sign-in/attempts.ts';
import { requirePasswords } from '#resources/sign-in/begin.ts';
import { MAILED_MS } from '#resources/sign-in/links.ts';
import { requireFreshSession } from '#resources/sign-in/own-session.ts';
import { findByUser, lockByUser } from '#resources/sign-in/queries.ts';
import { tell } from '#resources/sign-in/tell.ts';

/** Returns the address of the caller, and the one that they have asked for: none for a token, and for whoever signed in at an identity provider. */
export async function ownAddress({ db, clock }: Context, { sessionId, userId }: Principal) {
  if (sessionId === undefined) return { email: null, pending: null };
  const email = (await findByUser(db, userId))?.email ?? null;
  const link = await findAddressLinkOf(db, userId);
  const isValid = link !== undefined && link.expires_at > clock.now();
  return { email, pending: isValid ? { email: link.email, expires_at: link.expires_at.toISOString() } : null };
}

/**
 * Mails a link to the address that the caller wants to have, for one hour; an earlier one of theirs ends. Nothing changes until it is used.
 * Throws 403 where no mail is sent, and outside a session that began here at most 15 minutes ago; 429 for too many.
 */
export async function askForAddress(context: Context, principal: Principal, given: string, visitor: Visitor) {
  const { settings, vault } = context;
  const { userId } = principal;
  requirePasswords(context);
  await requireFreshSession(context, principal);
  if (!sendsMail(settings))
    throw forbidden(
      'This installation sends no mail (QUARTERDECK_SMTP_URL): ask whoever operates it for another address, which quarterdeck user address sets.',
    );
  const email = given.trim();
  if (!isMailAddress(email)) throw invalidField('email', 'must be one e-mail address such as ada@example.com');
  await limitRecoveries(context, visitor, email);
  await inTransaction(context, async (inside) => {
    const person = await lockByUser(inside.db, userId);
    if (!person) throw unauthenticated('The session is over: sign in again.');
    if (person.email === email) throw invalidField('email', 'is your address already');
    const id = newId();
    const now = inside.clock.now();
    const { hash } = deriveSecretText(vault, ADDRESS_PREFIX, id);
    const times = { created_at: now, expires_at: new Date(now.getTime() + MAILED_MS) };
    await saveAddressLink(inside.db, { id, user_id: userId, email, secret_hash: hash, ...times });
    await tell(inside, userId, { recovery_address: 'another one was asked for' });
    await enqueueMail(inside, ADDRESS_MAIL, { subjectId: id, recipient: email });
  });
  return ownAddress(context, principal);
}

/** Withdraws what the caller has asked for: its link ends. 404 if there is none, and for a token. */
export async function keepAddress(context: Context, principal: Principal): Promise<void> {
  const { userId } = principal;
  if (principal.sessionId === undefined || !(await deleteAddressLinkOf(context.db, userId)))
    throw notFound('Change of your address');
  await tell(context, userId, { recovery_address: 'the change was withdrawn' });
}
