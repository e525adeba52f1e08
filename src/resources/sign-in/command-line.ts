import { endSessions } from '#platform/access/sessions.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { forgetInvitationSecretsOf } from '#resources/member/index.ts';
import { deleteAddressLinkOf } from '#resources/sign-in/address/queries.ts';
import { makeLink } from '#resources/sign-in/links.ts';
import { deletePasskey, listPasskeys } from '#resources/sign-in/passkeys/queries.ts';
import { passwordOf } from '#resources/sign-in/passwords.ts';
import * as queries from '#resources/sign-in/queries.ts';
import { tell } from '#resources/sign-in/tell.ts';

/** Makes the one-time link of a person, of which their organizations are told. */
export const makeLinkFor = (context: Context, userId: string): Promise<{ url: string; expiresAt: Date }> =>
  inTransaction(context, async (inside) => {
    await tell(inside, userId, { password: 'a one-time link was made' });
    return makeLink(inside, userId);
  });

/**
 * Ends all sessions of a person, their one-time link and the links of the invitations that they sent; returns the number of sessions. Without
 * their password and passkeys they sign in again only by another link.
 */
export const signOut = (context: Context, userId: string, removesPassword: boolean): Promise<number> =>
  inTransaction(context, async (inside) => {
    const { db } = inside;
    const ended = await endSessions(db, userId, null);
    await queries.deleteLinksOf(db, userId);
    await forgetInvitationSecretsOf(db, userId);
    const removed = removesPassword ? await removeMeans(inside, userId) : {};
    await tell(inside, userId, { sessions: 'ended by the operator', ...removed });
    return ended;
  });

/** Removes password and passkeys of a person; returns what an event tells of it. */
async function removeMeans({ db }: Context, userId: string): Promise<Record<string, string>> {
  const password = passwordOf(await queries.lockByUser(db, userId));
  const passkeys = await listPasskeys(db, userId);
  await queries.deleteSignIn(db, userId);
  const how = 'removed by the operator';
  return { ...(password && { password: how }), ...(passkeys.length > 0 && { passkeys: how }) };
}

/**
 * Sets the address that links for a forgotten password are mailed to, null for none; a mailed link ends. Returns false for a person without a
 * password.
 */
export const setAddress = (context: Context, userId: string, email: string | null): Promise<boolean> =>
  inTransaction(context, async (inside) => {
    if (!(await queries.saveEmail(inside.db, userId, email))) return false;
    await queries.deleteRecoveryLinkOf(inside.db, userId);
    await deleteAddressLinkOf(inside.db, userId);
    await tell(inside, userId, {
      recovery_address: email === null ? 'removed by the operator' : 'set by the operator',
    });
    return true;
  });

/**
 * Removes a passkey of a person, the last one too, and ends their sessions. One may be of a lost device. Returns its name, or undefined if
 * they have none with that id.
 */
export const dropPasskey = (context: Context, userId: string, id: string): Promise<string | undefined> =>
  inTransaction(context, async (inside) => {
    const { db } = inside;
    const removed = await deletePasskey(db, userId, id);
    if (!removed) return undefined;
    await queries.noteChange(db, userId);
    await endSessions(db, userId, null);
    await forgetInvitationSecretsOf(db, userId);
    await tell(inside, userId, { passkey: 'removed by the operator', passkey_name: removed.name });
    return removed.name;
  });
