import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import * as queries from '#resources/sign-in/queries.ts';

/** Writes an event into each organization of a person about how they sign in. */
export async function tell(
  context: Context,
  { userId, name }: { userId: string; name: string },
  after: Record<string, string>,
): Promise<void> {
  for (const { organization_id: organizationId } of await queries.organizationsOf(context.db, userId))
    await audit(context, {
      organizationId,
      type: 'UPDATE',
      target: { type: 'MEMBERS_AND_ROLES', id: userId, name },
      after,
    });
}
