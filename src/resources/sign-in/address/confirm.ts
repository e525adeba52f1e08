import { parseSecretText } from '#platform/access/secret-text.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { enqueueMail, sendsMail } from '#platform/mail-queue/index.ts';
import { ADDRESS_PREFIX, FORMER_ADDRESS_MAIL } from '#resources/sign-in/address/mails.ts';
import { deleteAddressLinkOf, findAddressLink } from '#resources/sign-in/address/queries.ts';
import { attempt, type Visitor } from '#resources/sign-in/attempts.ts';
import { requirePasswords } from '#resources/sign-in/begin.ts';
import { notFoundLink, valid } from '#resources/sign-in/links.ts';
import { deleteRecoveryLinkOf, lockByUser, saveEmail } from '#resources/sign-in/queries.ts';
import { actingAs, tell } from '#resources/sign-in/tell.ts';

/** Finds the link of a secret; undefined once it was used, replaced or withdrawn, or is too old. */
export async function findAddressBySecret(context: Context, secret: string, lock = false) {
  const parts = parseSecretText(ADDRESS_PREFIX, secret);
  return parts && valid(context, parts, await findAddressLink(context.db, parts.id, lock));
}

/**
 * Gives a person the address that their link was mailed to: whoever has it reads mail there, and a session of the person asked for it. Mailed
 * links for a forgotten password end, and the address before is told. Throws 404, as a wrong guess, if the link is not valid.
 */
export async function confirmAddress(context: Context, secret: string, visitor: Visitor): Promise<void> {
  requirePasswords(context);
  await attempt(context, visitor, null, (wrong) =>
    inTransaction(context, async (inside) => {
      // The person before their link: whoever ends both takes them in this order.
      const found = await findAddressBySecret(inside, secret);
      const person = found && (await lockByUser(inside.db, found.user_id));
      const link = person && (await findAddressBySecret(inside, secret, true));
      if (!link) throw wrong(notFoundLink());
      const { user_id: userId } = link;
      await saveEmail(inside.db, userId, link.email);
      await deleteAddressLinkOf(inside.db, userId);
      await deleteRecoveryLinkOf(inside.db, userId);
      await tell(await actingAs(inside, userId, visitor), userId, { recovery_address: 'changed by themselves' });
      if (person.email !== null && sendsMail(inside.settings))
        await enqueueMail(inside, FORMER_ADDRESS_MAIL, { subjectId: userId, recipient: person.email });
    }),
  );
}
