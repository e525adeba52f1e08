import { sql, type Database, type Scope } from '#platform/database/index.ts';

const selectMembers = (db: Database) =>
  db
    .selectFrom('member')
    .innerJoin('user_account as person', 'person.id', 'member.user_id')
    .innerJoin('role', 'role.id', 'member.role_id')
    .select(['member.user_id', 'member.organization_id', 'member.created_at', 'member.updated_at', 'member.role_id'])
    .select(['role.name as role_name', 'role.built_in', 'role.permissions'])
    .select(['person.first_name', 'person.last_name', 'person.nickname', 'person.email', 'person.picture_url'])
    .select(['person.last_activity_at']);

export type MemberRow = NonNullable<Awaited<ReturnType<typeof findMember>>>;

/** Lists the members of an organization in the order in which they joined. */
export const listMembers = (db: Database, scope: Scope) =>
  selectMembers(db)
    .where('member.organization_id', '=', scope.organizationId)
    .orderBy('member.created_at')
    .orderBy('member.user_id');

export const findMember = (db: Database, scope: Scope, userId: string) =>
  selectMembers(db)
    .where('member.organization_id', '=', scope.organizationId)
    .where('member.user_id', '=', userId)
    .executeTakeFirst();

/**
 * Locks the organization's owner role until the commit, so that changes of its members come one after the other: two owners
 * who remove each other at the same time must not both succeed. Foreign keys don't wait for this lock.
 */
export const lockMembership = (db: Database, scope: Scope) =>
  db
    .selectFrom('role')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('built_in', '=', true)
    .where('name', '=', 'owner')
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow();

export const countOwners = (db: Database, scope: Scope) =>
  db
    .selectFrom('member')
    .innerJoin('role', 'role.id', 'member.role_id')
    .select(sql<number>`count(*)`.as('owners'))
    .where('member.organization_id', '=', scope.organizationId)
    .where('role.built_in', '=', true)
    .where('role.name', '=', 'owner')
    .executeTakeFirstOrThrow();

export const insertMember = (db: Database, scope: Scope, userId: string, roleId: string) =>
  db.insertInto('member').values({ organization_id: scope.organizationId, user_id: userId, role_id: roleId }).execute();

export const updateMemberRole = (db: Database, scope: Scope, userId: string, roleId: string) =>
  db
    .updateTable('member')
    .set({ role_id: roleId, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('user_id', '=', userId)
    .execute();

export const deleteMemberRow = (db: Database, scope: Scope, userId: string) =>
  db.deleteFrom('member').where('organization_id', '=', scope.organizationId).where('user_id', '=', userId).execute();

/** Returns the member with that verified address, if there is one. */
export const findMemberByEmail = (db: Database, scope: Scope, email: string) =>
  selectMembers(db)
    .where('member.organization_id', '=', scope.organizationId)
    .where('person.email_verified', '=', true)
    .where(sql`lower(person.email)`, '=', email.toLowerCase())
    .executeTakeFirst();

export const findVerifiedEmail = async (db: Database, userId: string): Promise<string | undefined> => {
  const row = await db
    .selectFrom('user_account')
    .select('email')
    .where('id', '=', userId)
    .where('email_verified', '=', true)
    .executeTakeFirst();
  return row?.email ?? undefined;
};

const selectInvitations = (db: Database) =>
  db
    .selectFrom('member_invitation as invitation')
    .innerJoin('organization', 'organization.id', 'invitation.organization_id')
    .innerJoin('role', 'role.id', 'invitation.role_id')
    .innerJoin('user_account as inviter', 'inviter.id', 'invitation.invited_by')
    .selectAll('invitation')
    .select(['organization.name as organization_name', 'organization.logo_url'])
    .select(['role.name as role_name', 'role.built_in'])
    .select(['inviter.first_name', 'inviter.last_name', 'inviter.nickname', 'inviter.email as inviter_email']);

export type InvitationRow = NonNullable<Awaited<ReturnType<typeof findInvitation>>>;

export const listInvitations = (db: Database, scope: Scope) =>
  selectInvitations(db)
    .where('invitation.organization_id', '=', scope.organizationId)
    .orderBy('invitation.created_at')
    .orderBy('invitation.id');

export const findInvitation = (db: Database, scope: Scope, id: string) =>
  selectInvitations(db)
    .where('invitation.organization_id', '=', scope.organizationId)
    .where('invitation.id', '=', id)
    .executeTakeFirst();

/** Finds an invitation of any organization. Only for its link, whose secret the caller compares. */
export const findInvitationById = (db: Database, id: string) =>
  selectInvitations(db).where('invitation.id', '=', id).executeTakeFirst();

/** Locks the row against other writes until the commit. */
export const lockInvitation = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('member_invitation')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

export interface NewInvitation {
  id: string;
  organization_id: string;
  email: string;
  role_id: string;
  invited_by: string;
  invited_with: string | null;
  secret_hash: Buffer | null;
  mail_secret_hash: Buffer | null;
  expires_at: Date;
}

export const insertInvitation = (db: Database, invitation: NewInvitation) =>
  db.insertInto('member_invitation').values(invitation).execute();

export const deleteExpiredInvitation = (db: Database, scope: Scope, email: string, now: Date) =>
  db
    .deleteFrom('member_invitation')
    .where('organization_id', '=', scope.organizationId)
    .where(sql`lower(email)`, '=', email.toLowerCase())
    .where('expires_at', '<=', now)
    .execute();

export const deleteInvitationRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('member_invitation').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

export const listInvitationsBy = (db: Database, scope: Scope, userId: string) =>
  listInvitations(db, scope).where('invitation.invited_by', '=', userId).execute();

/** Ends the links of the invitations that a person sent; whoever proves the address may still join. */
export const forgetInvitationSecretsOf = (db: Database, userId: string) =>
  db
    .updateTable('member_invitation')
    .set({ secret_hash: null, mail_secret_hash: null })
    .where('invited_by', '=', userId)
    .execute();
