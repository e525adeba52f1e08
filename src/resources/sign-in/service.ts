import { conflict, forbidden, invalidField, notFound, unauthenticated } from '#kernel/errors.ts';
import type { Principal } from '#platform/access/principal.ts';
import { endSession, endSessions, listSessions } from '#platform/access/sessions.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { acceptBySecret, forgetInvitationSecretsOf } from '#resources/member/index.ts';
import { attempt, type Visitor } from '#resources/sign-in/attempts.ts';
import { beginAndTell, requirePasswords } from '#resources/sign-in/begin.ts';
import { requireFreshSession, requireSession } from '#resources/sign-in/own-session.ts';
import { noteFailure, tell, tellSignOut } from '#resources/sign-in/tell.ts';
import {
  hashPassword,
  isPassword,
  isUnchanged,
  passwordOf,
  requireGoodPassword,
} from '#resources/sign-in/passwords.ts';
import * as queries from '#resources/sign-in/queries.ts';

/** Signs a person in. A wrong name is refused with 401 like a wrong password; after too many of them the refusal is 429. */
export async function signIn(context: Context, input: { name: string; password: string }, visitor: Visitor) {
  requirePasswords(context);
  return attempt(context, visitor, input.name, async (wrong) => {
    const refusal = unauthenticated('The name or the password is wrong.');
    const found = await queries.findByName(context.db, input.name);
    const password = passwordOf(found);
    if (!(await isPassword(password, input.password)) || !found) {
      if (found) noteFailure(context, found.user_id, visitor, 'wrong password');
      throw wrong(refusal);
    }
    return inTransaction(context, async (inside) => {
      // Another password since then ends sessions, of which this would be one.
      const present = await queries.lockByUser(inside.db, found.user_id);
      if (!present || !isUnchanged(passwordOf(present), password)) throw wrong(refusal);
      return beginAndTell(inside, { userId: found.user_id, name: present.name }, visitor);
    });
  });
}

/**
 * Sets another password, and ends the other sessions. A person without one sets the first, in a session that began at most 15 minutes ago.
 * Throws 403 outside a session that began here.
 */
export async function changePassword(
  context: Context,
  principal: Principal,
  input: { current_password?: string; password: string },
  visitor: Visitor,
): Promise<void> {
  const sessionId = requireSession(principal);
  const found = await queries.findByUser(context.db, principal.userId);
  if (!found) throw unauthenticated('The session is over: sign in again.');
  requireGoodPassword(input.password, [found.name, found.name.split('@')[0]!, ...principal.name.split(' ')]);
  const before = passwordOf(found);
  const given = input.current_password;
  if (!before) await requireFreshSession(context, principal);
  if (!before && given !== undefined) throw invalidField('current_password', 'is not allowed here: you have none yet');
  if (before && given === undefined) throw invalidField('current_password', 'is required: you have a password');
  await attempt(context, visitor, found.name, async (wrong) => {
    if (before && !(await isPassword(before, given!)))
      throw wrong(invalidField('current_password', 'is not your present password'));
    const password = await hashPassword(input.password);
    await inTransaction(context, async (inside) => {
      const present = await queries.lockByUser(inside.db, principal.userId);
      if (!present || !isUnchanged(passwordOf(present), before))
        throw conflict('The password was changed meanwhile: sign in with the new one.');
      await queries.updatePassword(inside.db, principal.userId, password);
      await queries.deleteLinksOf(inside.db, principal.userId);
      await endSessions(inside.db, principal.userId, sessionId);
      await forgetInvitationSecretsOf(inside.db, principal.userId);
      await tell(inside, principal.userId, { password: 'changed by themselves' });
    });
  });
}

/** Lists the sessions of the caller, the newest first: none for a token, and for whoever signed in at an identity provider. */
export async function listOwnSessions({ db, clock }: Context, principal: Principal) {
  if (principal.sessionId === undefined) return { results: [] };
  const rows = await listSessions(db, principal.userId, clock.now()).execute();
  const results = rows.map((row) => ({
    id: row.id,
    created_at: row.created_at.toISOString(),
    last_used_at: row.last_used_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
    user_agent: row.user_agent ?? '',
    address: row.address ?? '',
    current: row.id === principal.sessionId,
  }));
  return { results };
}

/** Ends a session of the caller, which may be the present one. A token has none. */
export async function endOwnSession(context: Context, principal: Principal, id: string): Promise<void> {
  const ended = principal.sessionId === undefined ? undefined : await endSession(context.db, principal.userId, id);
  if (!ended) throw notFound('Session');
  await tellSignOut(context, principal.userId, { session_id: id, address: ended.address });
}

/** Makes the caller a member by the link of an invitation: for who has an account already, here or at an identity provider. */
export async function acceptInvitation(context: Context, principal: Principal, secret: string) {
  if (principal.kind !== 'user')
    throw forbidden('A token accepts no invitation: sign in, so that it is you who becomes a member.');
  return acceptBySecret(context, principal, secret);
}
