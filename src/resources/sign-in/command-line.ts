import { endSessions } from '#platform/access/sessions.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { forgetInvitationSecretsOf } from '#resources/member/index.ts';
import { makeLink } from '#resources/sign-in/links.ts';
import * as queries from '#resources/sign-in/queries.ts';
import { tell } from '#resources/sign-in/tell.ts';

/** Person as events name them. */
export interface NamedPerson {
  userId: string;
  name: string;
}

/** Makes the one-time link of a person, of which their organizations are told. */
export const makeLinkFor = (context: Context, person: NamedPerson): Promise<{ url: string; expiresAt: Date }> =>
  inTransaction(context, async (inside) => {
    await tell(inside, person, { password: 'a one-time link was made' });
    return makeLink(inside, person.userId);
  });

/**
 * Ends all sessions of a person, their one-time link and the links of the invitations that they sent; returns the number of sessions. Without
 * their password they sign in again only by another link.
 */
export const signOut = (context: Context, person: NamedPerson, removesPassword: boolean): Promise<number> =>
  inTransaction(context, async (inside) => {
    const { db } = inside;
    const ended = await endSessions(db, person.userId, null);
    await queries.deleteLinkOf(db, person.userId);
    await forgetInvitationSecretsOf(db, person.userId);
    if (removesPassword) await queries.deleteSignIn(db, person.userId);
    await tell(inside, person, {
      sessions: 'ended by the operator',
      ...(removesPassword ? { password: 'removed by the operator' } : {}),
    });
    return ended;
  });
