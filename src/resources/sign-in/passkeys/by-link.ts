import { createHash } from 'node:crypto';
import { newId } from '#kernel/ids.ts';
import { badRequest } from '#kernel/errors.ts';
import { isSecret } from '#platform/access/secret-text.ts';
import type { Context } from '#platform/context.ts';
import { attempt, type Visitor } from '#resources/sign-in/attempts.ts';
import { requirePasswords } from '#resources/sign-in/begin.ts';
import { findLink } from '#resources/sign-in/links.ts';
import { answerChallenge, makeChallenge, requireSite } from '#resources/sign-in/passkeys/challenge.ts';
import { madePasskey, refuseKnown, type CreatedCredential } from '#resources/sign-in/passkeys/made.ts';
import { creationOptions } from '#resources/sign-in/passkeys/options.ts';
import { listPasskeys } from '#resources/sign-in/passkeys/queries.ts';
import { findByName } from '#resources/sign-in/queries.ts';
import { chosenName, requireLink, takenName, useLink } from '#resources/sign-in/redeem.ts';

/** Makes the request for the passkey of a person with a link: of a new one for an invitation. 404 if the link is not valid, 409 for a taken name. */
export async function beginByLink(context: Context, input: { secret: string; name?: string }, visitor: Visitor) {
  requirePasswords(context);
  const site = requireSite(context);
  return attempt(context, visitor, null, async (wrong) => {
    const view = await requireLink(context, input.secret, wrong);
    const name = chosenName(input.name, view.name);
    const link = await findLink(context, input.secret);
    const userId = link?.user_id ?? newId();
    const holder = await findByName(context.db, name);
    // Before a passkey is made that could not be stored.
    if (holder && holder.user_id !== userId) throw takenName(name);
    const secretHash = hashOf(input.secret);
    const { challenge, cookie } = makeChallenge(context, site, { purpose: 'link', userId, name, secretHash });
    const present = await listPasskeys(context.db, userId);
    return { options: creationOptions(site, { userId, name, challenge, present }), cookie };
  });
}

export interface RedeemByPasskeyInput {
  secret: string;
  passkey_name: string;
  credential: CreatedCredential;
  first_name?: string;
  last_name?: string;
}

/** Uses a link with a passkey (`useLink`), under the name that the passkey was made for. */
export async function redeemByPasskey(
  context: Context,
  input: RedeemByPasskeyInput,
  cookies: unknown,
  visitor: Visitor,
) {
  requirePasswords(context);
  const site = requireSite(context);
  return attempt(context, visitor, null, async (wrong) => {
    const { purpose } = await requireLink(context, input.secret, wrong);
    const made = await answerChallenge(context, site, cookies, 'link');
    if (!isSecret(Buffer.from(made.secretHash, 'base64url'), input.secret))
      throw badRequest('The passkey was made for another link: open this one again, and begin again.');
    const { challenge, name, userId } = made;
    const passkey = await madePasskey(site, challenge, input.credential, input.passkey_name).catch((error) => {
      throw wrong(error);
    });
    const { secret, first_name, last_name } = input;
    const given = { secret, name, ...(first_name && { first_name }), ...(last_name && { last_name }) };
    return refuseKnown(() => useLink(context, purpose, given, { passkey, userId }, visitor));
  });
}

const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('base64url');
