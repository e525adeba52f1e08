import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import * as queries from '#resources/sign-in/queries.ts';

/** Writes an event into each organization of a person about how they sign in. */
export async function tell(context: Context, userId: string, after: Record<string, string>): Promise<void> {
  const target = { type: 'MEMBERS_AND_ROLES' as const, id: userId, name: await queries.nameOf(context.db, userId) };
  for (const { organization_id: organizationId } of await queries.organizationsOf(context.db, userId))
    await audit(context, { organizationId, type: 'UPDATE', target, after });
}
