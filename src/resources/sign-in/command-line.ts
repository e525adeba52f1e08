import { endSessions } from '#platform/access/sessions.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { forgetInvitationSecretsOf } from '#resources/member/index.ts';
import { makeLink } from '#resources/sign-in/links.ts';
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
 * their password they sign in again only by another link.
 */
export const signOut = (context: Context, userId: string, removesPassword: boolean): Promise<number> =>
  inTransaction(context, async (inside) => {
    const { db } = inside;
    const ended = await endSessions(db, userId, null);
    await queries.deleteLinkOf(db, userId);
    await forgetInvitationSecretsOf(db, userId);
    if (removesPassword) await queries.deleteSignIn(db, userId);
    await tell(inside, userId, {
      sessions: 'ended by the operator',
      ...(removesPassword ? { password: 'removed by the operator' } : {}),
    });
    return ended;
  });
