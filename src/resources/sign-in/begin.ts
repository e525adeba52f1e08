import { forbidden } from '#kernel/errors.ts';
import { beginSession } from '#platform/access/sessions.ts';
import { takesPasswords } from '#platform/access/takes-passwords.ts';
import type { Context } from '#platform/context.ts';
import type { Visitor } from '#resources/sign-in/attempts.ts';
import { actingAs, tellSignIn } from '#resources/sign-in/tell.ts';

/** Throws 403 where people do not sign in here. */
export function requirePasswords({ settings }: Pick<Context, 'settings'>): void {
  if (!takesPasswords(settings))
    throw forbidden('This installation takes no passwords (QUARTERDECK_PASSWORDS): sign in at its identity provider.');
}

/** Begins a session of a person. `name` is the name that they sign in with. */
export async function begin(context: Context, userId: string, name: string, visitor: Visitor) {
  const device = { userAgent: visitor.userAgent, address: visitor.address ?? null };
  const { id, token, expiresAt } = await beginSession(context, userId, device);
  return { token, session_id: id, user_id: userId, name, expires_at: expiresAt.toISOString() };
}

/** Begins a session of a person who has proved who they are. Its event names the passkey, if it was done with one. */
export async function beginAndTell(
  context: Context,
  { userId, name, passkey }: { userId: string; name: string; passkey?: string },
  visitor: Visitor,
) {
  const made = await begin(context, userId, name, visitor);
  const acting = await actingAs(context, userId, visitor);
  await tellSignIn(acting, userId, {
    session_id: made.session_id,
    address: visitor.address ?? null,
    ...(passkey !== undefined && { passkey_name: passkey }),
  });
  return made;
}
