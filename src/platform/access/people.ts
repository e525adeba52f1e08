import { newId } from '#kernel/ids.ts';
import type { Principal } from '#platform/access/principal.ts';
import { grantOfRole, ROLE_AS_JSON, type StoredRole } from '#platform/access/roles.ts';
import type { Platform } from '#platform/context.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';

/** Claims of an identity provider about a person; '' for absent ones. */
export interface Person {
  /** `iss|sub` */
  subject: string;
  /** Address that the provider has verified, else null (docs/contributing/rules.md 25). */
  email: string | null;
  /** Set if the provider names an address or its verification, and does not vouch for it. */
  emailUnverified?: boolean;
  firstName: string;
  lastName: string;
  nickname: string;
  pictureUrl: string;
}

/** Beginning of the subject of people without an identity provider. Issuers are URLs: no subject of theirs begins like this. */
const SUBJECT_HERE = 'here|';

/** Returns the subject of a person who has no account at an identity provider. */
export const subjectHere = (userId: string): string => `${SUBJECT_HERE}${userId}`;

/** Returns the identity provider of a person by their subject; null for whoever has none. */
export const issuerOf = (subject: string | null): string | null =>
  subject === null || subject.startsWith(SUBJECT_HERE) ? null : subject.split('|', 1)[0]!;

/** Least milliseconds between two records of a person's last activity. */
export const ACTIVITY_MS = 5 * 60_000;

/** Returns the name under which a person is shown. */
export const displayName = (user: {
  first_name: string;
  last_name: string;
  nickname: string;
  email: string | null;
}): string => `${user.first_name} ${user.last_name}`.trim() || user.nickname || user.email || 'unknown';

/**
 * The caller behind a verified session, with what they may do now: read anew with every request, so that a removal or another
 * role holds at once. A person unknown so far becomes a user without an organization (docs/contributing/rules.md 25).
 */
export async function findSessionPrincipal(platform: Platform, person: Person): Promise<Principal> {
  const { db, clock } = platform;
  const row = (await findUser(db, person.subject)) ?? (await makeUser(db, person));
  await noteChanges(db, row, person, clock.now());
  return principalOf(row);
}

/** Returns the caller that a user is, with what they may do now. */
export function principalOf(row: UserRow): Principal {
  const grants = row.memberships.map((membership) => grantOfRole(membership.organization_id, membership.role));
  return { id: row.id, kind: 'user', userId: row.id, name: displayName(row), grants };
}

/**
 * A member of an organization with what they may do there now; undefined if they are none. For what a person has arranged to happen later: it
 * is done with the rights that they have then.
 */
export async function findMemberPrincipal(
  db: Database,
  scope: Scope,
  userId: string | null,
): Promise<Principal | undefined> {
  const row = await db
    .selectFrom('member')
    .innerJoin('role', 'role.id', 'member.role_id')
    .innerJoin('user_account', 'user_account.id', 'member.user_id')
    .select(['user_account.first_name', 'user_account.last_name', 'user_account.nickname', 'user_account.email'])
    .select(ROLE_AS_JSON('role').as('role'))
    .where('member.organization_id', '=', scope.organizationId)
    .where('member.user_id', '=', userId)
    .executeTakeFirst();
  if (!row || userId === null) return undefined;
  const grants = [grantOfRole(scope.organizationId, row.role)];
  return { id: userId, kind: 'user', userId, name: displayName(row), grants };
}

export interface UserRow {
  id: string;
  email: string | null;
  email_verified: boolean;
  first_name: string;
  last_name: string;
  nickname: string;
  picture_url: string;
  last_activity_at: Date | null;
  memberships: { organization_id: string; role: StoredRole }[];
}

/** Columns of a user (`account`) with their roles, for statements that run with every request of a session. */
export const USER_COLUMNS = sql`
  account.id, account.email, account.email_verified, account.first_name, account.last_name, account.nickname, account.picture_url,
  account.last_activity_at,
  coalesce((
    select json_agg(json_build_object('organization_id', member.organization_id, 'role', ${ROLE_AS_JSON('role')})
      order by member.created_at, member.organization_id)
    from member join role on role.id = member.role_id
    where member.user_id = account.id), '[]') as memberships`;

/** Finds a user and their roles in one query: it runs with every request of a session. */
const findUser = async (db: Database, subject: string): Promise<UserRow | undefined> =>
  (
    await sql<UserRow>`
      select ${USER_COLUMNS}
      from user_account account
      where account.subject = ${subject}`.execute(db)
  ).rows[0];

async function makeUser(db: Database, person: Person): Promise<UserRow> {
  await db
    .insertInto('user_account')
    .values({ id: newId(), subject: person.subject, ...columnsOf(person), email_verified: person.email !== null })
    .onConflict((conflict) => conflict.column('subject').doNothing())
    .execute();
  return (await findUser(db, person.subject))!;
}

const columnsOf = (person: Person) => ({
  email: person.email,
  first_name: person.firstName,
  last_name: person.lastName,
  nickname: person.nickname,
  picture_url: person.pictureUrl,
});

/** Stores the provider's present claims; absent ones stay. An address that the provider no longer vouches for proves nothing any more. */
async function noteChanges(db: Database, row: UserRow, person: Person, now: Date): Promise<void> {
  const said = Object.entries(columnsOf(person)).filter(
    ([name, value]) => value && row[name as keyof UserRow] !== value,
  );
  const verified = person.email !== null ? true : person.emailUnverified ? false : row.email_verified;
  const isVerifiedAnew = verified !== row.email_verified;
  const idle = now.getTime() - (row.last_activity_at?.getTime() ?? 0) > ACTIVITY_MS;
  if (said.length === 0 && !isVerifiedAnew && !idle) return;
  const changes = { ...Object.fromEntries(said), ...(isVerifiedAnew ? { email_verified: verified } : {}) };
  Object.assign(row, changes);
  await db
    .updateTable('user_account')
    .set({
      ...changes,
      ...(said.length > 0 || isVerifiedAnew ? { updated_at: now } : {}),
      last_activity_at: now,
    })
    .where('id', '=', row.id)
    .execute();
}
