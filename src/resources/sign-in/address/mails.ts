import { deriveSecretText } from '#platform/access/secret-text.ts';
import type { MailWriter } from '#platform/mail-queue/index.ts';
import { signInPage } from '#platform/settings/address.ts';
import { findAddressLink } from '#resources/sign-in/address/queries.ts';
import { findByUser } from '#resources/sign-in/queries.ts';

/** Prefix of links that are mailed to the address that a person wants to have. */
export const ADDRESS_PREFIX = 'qa';
/** Mail with such a link. */
export const ADDRESS_MAIL = 'ADDRESS';
/** Mail to the address that a person had. */
export const FORMER_ADDRESS_MAIL = 'FORMER_ADDRESS';

/** Writes the mail with a link; null where it was used, replaced or withdrawn, or is over. */
export const writeAddress: MailWriter = async ({ db, clock, vault, settings }, { subjectId, recipient }) => {
  const link = subjectId === null ? undefined : await findAddressLink(db, subjectId);
  if (!link || link.expires_at <= clock.now() || link.email !== recipient) return null;
  const end = link.expires_at.toISOString().slice(11, 16);
  return {
    subject: 'Your address',
    text: `The account ${link.name} at ${signInPage(settings)} asks for this address: links for a forgotten password go here then.

Open this link to confirm it, until ${end} UTC. It works once:

${signInPage(settings, deriveSecretText(vault, ADDRESS_PREFIX, link.id).text)}

If it is not your account, do nothing.
`,
  };
};

/** Tells the address that a person had that it is theirs no more. */
export const writeFormerAddress: MailWriter = async ({ db, settings }, { subjectId }) => {
  const person = subjectId === null ? undefined : await findByUser(db, subjectId);
  if (!person) return null;
  return {
    subject: 'Your address was changed',
    text: `The account ${person.name} at ${signInPage(settings)} has another address now. Links for a forgotten password no longer come here.

If this was not you, tell whoever operates the installation at once: they end the sessions of the account, and set its address.
`,
  };
};
