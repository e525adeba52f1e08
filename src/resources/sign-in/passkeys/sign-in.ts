import { unauthenticated } from '#kernel/errors.ts';
import { checkPasskey, ParsingError } from '#kernel/parsing/index.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import type { PasskeySite } from '#platform/settings/address.ts';
import { attempt, PASSKEY, type Visitor } from '#resources/sign-in/attempts.ts';
import { beginAndTell, requirePasswords } from '#resources/sign-in/begin.ts';
import { answerChallenge, makeChallenge, requireSite } from '#resources/sign-in/passkeys/challenge.ts';
import { requestOptions, userHandle } from '#resources/sign-in/passkeys/options.ts';
import { findByCredential, noteUse } from '#resources/sign-in/passkeys/queries.ts';
import { lockByUser } from '#resources/sign-in/queries.ts';
import { noteFailure } from '#resources/sign-in/tell.ts';

/** Answer of `navigator.credentials.get`, as its `toJSON` writes it. */
export interface UsedCredential {
  id: string;
  rawId: string;
  type: 'public-key';
  response: { clientDataJSON: string; authenticatorData: string; signature: string; userHandle?: string | null };
}

/** Makes the request by which a browser offers the passkeys that it has for this site, of all people. */
export function beginSignIn(context: Context) {
  requirePasswords(context);
  const site = requireSite(context);
  const { challenge, cookie } = makeChallenge(context, site, { purpose: 'sign-in' });
  return { options: requestOptions(site, challenge), cookie };
}

/** Signs a person in by a passkey. Whatever is wrong with it, the refusal is the same 401; after too many of them it is 429. */
export async function signInWithPasskey(
  context: Context,
  credential: UsedCredential,
  cookies: unknown,
  visitor: Visitor,
) {
  requirePasswords(context);
  const site = requireSite(context);
  return attempt(context, visitor, PASSKEY, async (wrong) => {
    const refusal = unauthenticated('The passkey is not valid here: use another one, or sign in in another way.');
    const { challenge } = await answerChallenge(context, site, cookies, 'sign-in').catch((error) => {
      throw wrong(error);
    });
    const credentialId = Buffer.from(credential.id, 'base64url');
    // An id of an authenticator is as good as random: an early answer for an unknown one helps to find no person.
    const found = await findByCredential(context.db, credentialId);
    if (!found) throw wrong(refusal);
    const isOwn = credential.response.userHandle === userHandle(found.user_id);
    const signCount = isOwn ? await countOf(context, site, challenge, credential, found) : null;
    if (signCount === null) {
      noteFailure(context, found.user_id, visitor, 'wrong passkey');
      throw wrong(refusal);
    }
    return inTransaction(context, async (inside) => {
      const person = await lockByUser(inside.db, found.user_id);
      const present = await findByCredential(inside.db, credentialId, true);
      // Meanwhile it may have been removed, or a copy of it was used.
      if (!person || present?.id !== found.id || !isNext(present.sign_count, signCount)) throw wrong(refusal);
      await noteUse(inside.db, found.id, signCount, inside.clock.now());
      return beginAndTell(inside, { userId: found.user_id, name: person.name, passkey: present.name }, visitor);
    });
  });
}

/** Returns the count of signatures that the authenticator names; null if the passkey is refused. */
async function countOf(
  { log }: Context,
  site: PasskeySite,
  challenge: string,
  credential: UsedCredential,
  { id, public_key: key, sign_count: signCount }: { id: string; public_key: Buffer; sign_count: number },
): Promise<number | null> {
  const options = { ...site, challenge, publicKey: key.toString('base64url'), signCount };
  try {
    return await checkPasskey('passkey-assertion', credential, options);
  } catch (error) {
    if (!(error instanceof ParsingError) || error.kind === 'busy') throw error;
    log.info({ passkeyId: id, problem: error.problem }, 'a passkey was refused');
    return null;
  }
}

/** Returns whether a count may follow another: it rises with each use, unless the authenticator counts nothing. */
const isNext = (before: number, after: number): boolean => after > before || (after === 0 && before === 0);
