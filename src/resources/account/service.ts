import { internal } from '#kernel/errors.ts';
import { displayName } from '#platform/access/people.ts';
import type { Principal } from '#platform/access/principal.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import * as queries from '#resources/account/queries.ts';

const toAccountView = (row: queries.AccountRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  nickname: row.nickname,
  first_name: row.first_name,
  last_name: row.last_name,
  profile_picture_url: row.picture_url,
  communication_email: row.communication_email || (row.email ?? ''),
});

/** Returns the caller's own account; a token acts for its creator (docs/contributing/rules.md 27). `lock` is set before a change. */
export async function getAccount(context: Context, userId: string, lock = false) {
  const row = await queries.findAccountById(context.db, userId, lock);
  if (!row) throw internal(`User ${userId} is gone while they are calling.`);
  return toAccountView(row);
}

/** Sets the address for messages. It is never used to recognise the person: only a verified address is (docs/contributing/rules.md 25). */
export async function editAccount(context: Context, principal: Principal, input: { communication_email?: string }) {
  const { userId } = principal;
  const before = await getAccount(context, userId, true);
  if (input.communication_email === undefined) return before;
  await queries.updateCommunicationEmail(context.db, userId, input.communication_email);
  const row = (await queries.findAccountById(context.db, userId))!;
  const after = toAccountView(row);
  // An account belongs to no organization: each one that the person is in tells of it.
  for (const { organizationId } of principal.grants)
    await audit(context, {
      organizationId,
      type: 'UPDATE',
      target: { type: 'MEMBERS_AND_ROLES', id: userId, name: displayName(row) },
      before,
      after,
    });
  return after;
}
