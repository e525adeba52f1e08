import { inTransaction, type Context } from '#platform/context.ts';
import { audit, type EventType } from '#platform/events/audit.ts';
import { readInstallation } from '#platform/installation/index.ts';
import { actorOf } from '#platform/access/authenticate.ts';
import { originOf, type Principal } from '#platform/access/principal.ts';
import type { Visitor } from '#resources/sign-in/attempts.ts';
import * as queries from '#resources/sign-in/queries.ts';

/** Writes an event into each organization of a person about how they sign in. */
export const tell = (context: Context, userId: string, after: Record<string, string>): Promise<void> =>
  write(context, userId, 'UPDATE', { after });

/** Returns the context in which a person acts who was not known when the request came. */
export async function actingAs(context: Context, userId: string, { userAgent }: Visitor): Promise<Context> {
  const name = await queries.nameOf(context.db, userId);
  const principal: Principal = { id: userId, kind: 'user', userId, name, grants: [] };
  return { ...context, actor: actorOf(principal, userAgent ?? undefined) };
}

/** Session as events name it. */
interface ToldSession {
  session_id: string;
  address: string | null;
  /** Name of the passkey that signed in; absent for a password. */
  passkey_name?: string;
}

/** Writes that a person has signed in. Without an event where the installation is read-only: people sign in then, too. */
export const tellSignIn = (context: Context, userId: string, session: ToldSession): Promise<void> =>
  unlessReadOnly(context, () => write(context, userId, 'CREATE', { after: session, sub: 'SSO' }));

/** Writes that a person has ended a session. */
export const tellSignOut = (context: Context, userId: string, session: ToldSession): Promise<void> =>
  unlessReadOnly(context, () => write(context, userId, 'DELETE', { before: session, sub: 'SSO' }));

/** Way in which a sign-in failed. */
type Failure = 'wrong password' | 'wrong passkey';

/** Writes the event of a failure while the answer is on its way: one that waited for it would tell which people there are. */
export function noteFailure(context: Context, userId: string, visitor: Visitor, reason: Failure): void {
  void inTransaction(context, (inside) => tellFailure(inside, userId, visitor, reason)).catch((error: unknown) =>
    context.log.warn({ err: error, userId }, 'the event of a failed sign-in could not be written'),
  );
}

/** Writes that a sign-in for a person has failed, by an actor that is not known. */
const tellFailure = (
  context: Context,
  userId: string,
  { address, userAgent }: Visitor,
  reason: Failure,
): Promise<void> =>
  unlessReadOnly(context, () => {
    const unknown = {
      ...context,
      actor: { userId: null, name: 'unknown', origin: originOf(userAgent ?? undefined), userAgent },
    };
    const after = { sign_in: 'failed', reason, address: address ?? '' };
    return write(unknown, userId, 'UPDATE', { after, sub: 'SSO' });
  });

async function unlessReadOnly({ db }: Context, work: () => Promise<void>): Promise<void> {
  const { readOnlySince } = await readInstallation(db);
  if (readOnlySince === null) await work();
}

async function write(
  context: Context,
  userId: string,
  type: EventType,
  { sub, ...change }: { sub?: 'SSO'; before?: object; after?: object },
): Promise<void> {
  const name = await queries.nameOf(context.db, userId);
  const target = { type: 'MEMBERS_AND_ROLES' as const, id: userId, name, ...(sub && { sub }) };
  for (const { organization_id: organizationId } of await queries.organizationsOf(context.db, userId))
    await audit(context, { organizationId, type, target, ...change });
}
