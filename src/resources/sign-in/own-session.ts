import { forbidden } from '#kernel/errors.ts';
import type { Principal } from '#platform/access/principal.ts';
import { listSessions } from '#platform/access/sessions.ts';
import type { Context } from '#platform/context.ts';

/** Milliseconds after its begin in which a session may change how its person signs in: whoever finds it later cannot keep the account. */
const FRESH_MS = 15 * 60_000;

/** Returns the id of the caller's session. Throws 403 for a token, and for a session of an identity provider. */
export function requireSession({ sessionId }: Principal): string {
  if (sessionId === undefined)
    throw forbidden(
      'This requires a session that began here, with a password or a passkey: tokens and identity providers have none.',
    );
  return sessionId;
}

/** Returns the id of the caller's session. Throws 403 if it began more than 15 minutes ago, too. */
export async function requireFreshSession({ db, clock }: Context, principal: Principal): Promise<string> {
  const id = requireSession(principal);
  const now = clock.now();
  const session = await listSessions(db, principal.userId, now).where('id', '=', id).executeTakeFirst();
  if (!session || now.getTime() - session.created_at.getTime() > FRESH_MS)
    throw forbidden('Your session began more than 15 minutes ago: sign out, sign in again, and repeat this.');
  return id;
}
