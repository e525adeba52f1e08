import { displayName, subjectHere } from '#platform/access/people.ts';
import { sql, type Database } from '#platform/database/index.ts';
import {
  deleteAddressLinkOf,
  deleteEveryAddressLink,
  removeOldAddressLinks,
} from '#resources/sign-in/address/queries.ts';
import type { StoredPassword } from '#resources/sign-in/passwords.ts';

const selectSignIn = (db: Database) =>
  db
    .selectFrom('sign_in')
    .select(['user_id', 'name', 'email', 'password_hash', 'password_salt', 'memory_kib', 'passes']);

/** Finds who signs in with a name, in upper or lower case. */
export const findByName = (db: Database, name: string) =>
  selectSignIn(db)
    .where(sql`lower(name collate "C")`, '=', name.toLowerCase())
    .executeTakeFirst();

export const findByUser = (db: Database, userId: string) =>
  selectSignIn(db).where('user_id', '=', userId).executeTakeFirst();

/** Finds how a person signs in, and keeps it from changing until the commit. */
export const lockByUser = (db: Database, userId: string) =>
  selectSignIn(db).where('user_id', '=', userId).forUpdate().executeTakeFirst();

/** Lists who gets the links for a forgotten password that are asked for with an address. */
export const listByEmail = (db: Database, email: string, limit: number) =>
  selectSignIn(db)
    .where(sql`lower(email)`, '=', email.toLowerCase())
    .orderBy('created_at')
    .limit(limit)
    .execute();

/** Sets the address that a person gets links for a forgotten password at; null for none. Returns whether they have a password. */
export const saveEmail = async (db: Database, userId: string, email: string | null): Promise<boolean> => {
  const { numUpdatedRows } = await db
    .updateTable('sign_in')
    .set({ email, updated_at: sql`now()` })
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
};

const NO_PASSWORD = { password_hash: null, password_salt: null, memory_kib: null, passes: null };

/** Sets name and password of a person, null for none; an earlier password is replaced. */
export const saveSignIn = (db: Database, userId: string, name: string, password: StoredPassword | null) => {
  const set = { name, ...(password ?? NO_PASSWORD) };
  return db
    .insertInto('sign_in')
    .values({ user_id: userId, ...set })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ ...set, updated_at: sql<Date>`now()` }))
    .execute();
};

export const updatePassword = (db: Database, userId: string, password: StoredPassword) =>
  db
    .updateTable('sign_in')
    .set({ ...password, updated_at: sql`now()` })
    .where('user_id', '=', userId)
    .execute();

/** Notes that a person signs in in other ways than before. Refused while the installation is read-only, which uses of passkeys are not. */
export const noteChange = (db: Database, userId: string) =>
  db
    .updateTable('sign_in')
    .set({ updated_at: sql`now()` })
    .where('user_id', '=', userId)
    .execute();

/** Removes password and passkeys of a person, and with them their sessions. */
export const deleteSignIn = (db: Database, userId: string) =>
  db.deleteFrom('sign_in').where('user_id', '=', userId).execute();

/** Makes a person of this installation. Their subject is none of an identity provider; the first administrator alone has no subject. */
export const insertPerson = (
  db: Database,
  person: { id: string; nickname: string; first_name: string; last_name: string },
) =>
  db
    .insertInto('user_account')
    .values({ ...person, subject: subjectHere(person.id) })
    .execute();

/** Gives a person names who has none. */
export const namePerson = (db: Database, id: string, first_name: string, last_name: string) =>
  db
    .updateTable('user_account')
    .set({ first_name, last_name, updated_at: sql`now()` })
    .where('id', '=', id)
    .where('first_name', '=', '')
    .where('last_name', '=', '')
    .execute();

/** Returns the name under which a person is shown. */
export const nameOf = async (db: Database, id: string): Promise<string> =>
  displayName(
    await db
      .selectFrom('user_account')
      .select(['nickname', 'first_name', 'last_name', 'email'])
      .where('id', '=', id)
      .executeTakeFirstOrThrow(),
  );

export const organizationsOf = (db: Database, userId: string) =>
  db.selectFrom('member').select('organization_id').where('user_id', '=', userId).orderBy('organization_id').execute();

/** Replaces the one-time link of a person. */
export const saveLink = (
  db: Database,
  link: { id: string; user_id: string; secret_hash: Buffer; created_at: Date; expires_at: Date },
) =>
  db
    .insertInto('sign_in_link')
    .values(link)
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(link))
    .execute();

/** Finds a one-time link; `lock` keeps others from using it until the commit. */
export const findLink = (db: Database, id: string, lock = false) =>
  db
    .selectFrom('sign_in_link')
    .select(['id', 'user_id', 'secret_hash', 'expires_at'])
    .where('id', '=', id)
    .$if(lock, (query) => query.forUpdate())
    .executeTakeFirst();

/** Makes the link that a person is mailed for a forgotten password. */
export const insertRecoveryLink = (
  db: Database,
  link: { id: string; user_id: string; secret_hash: Buffer; created_at: Date; expires_at: Date },
) =>
  db
    .insertInto('recovery_link')
    .values(link)
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(link))
    .execute();

const selectRecoveryLink = (db: Database) =>
  db
    .selectFrom('recovery_link')
    .innerJoin('sign_in', 'sign_in.user_id', 'recovery_link.user_id')
    .select(['recovery_link.id', 'recovery_link.user_id', 'recovery_link.secret_hash', 'recovery_link.expires_at'])
    .select(['sign_in.name', 'sign_in.email']);

/** Finds the mailed link of a person; `lock` keeps others from using it until the commit. */
export const findRecoveryLink = (db: Database, id: string, lock = false) =>
  selectRecoveryLink(db)
    .where('recovery_link.id', '=', id)
    .$if(lock, (query) => query.forUpdate('recovery_link'))
    .executeTakeFirst();

export const findRecoveryLinkOf = (db: Database, userId: string) =>
  selectRecoveryLink(db).where('recovery_link.user_id', '=', userId).executeTakeFirst();

/** Ends the links of a person, those that were mailed too. */
export const deleteLinksOf = async (db: Database, userId: string): Promise<void> => {
  await db.deleteFrom('sign_in_link').where('user_id', '=', userId).execute();
  await deleteRecoveryLinkOf(db, userId);
  await deleteAddressLinkOf(db, userId);
};

export const deleteRecoveryLinkOf = (db: Database, userId: string) =>
  db.deleteFrom('recovery_link').where('user_id', '=', userId).execute();

export const deleteEveryLink = async (db: Database): Promise<void> => {
  await db.deleteFrom('sign_in_link').execute();
  await db.deleteFrom('recovery_link').execute();
  await deleteEveryAddressLink(db);
};

export const removeOldLinks = async (db: Database, now: Date): Promise<void> => {
  await db.deleteFrom('sign_in_link').where('expires_at', '<=', now).execute();
  await db.deleteFrom('recovery_link').where('expires_at', '<=', now).execute();
  await removeOldAddressLinks(db, now);
};

/** Lists the people of the installation with what they sign in with, their organizations and their sessions. */
export const listPeople = (db: Database) =>
  db
    .selectFrom('user_account as person')
    .leftJoin('sign_in', 'sign_in.user_id', 'person.id')
    .select(['person.id', 'person.subject', 'person.nickname', 'person.first_name', 'person.last_name', 'person.email'])
    .select(['person.last_activity_at', 'sign_in.name as sign_in_name', 'sign_in.email as recovery_email'])
    .select((select) => [
      select
        .selectFrom('member')
        .innerJoin('organization', 'organization.id', 'member.organization_id')
        .innerJoin('role', 'role.id', 'member.role_id')
        .whereRef('member.user_id', '=', 'person.id')
        .select(
          sql<string>`string_agg(organization.name || ' (' || role.name || ')', ', ' order by organization.name)`.as(
            'all',
          ),
        )
        .as('organizations'),
      select
        .selectFrom('sign_in_session as session')
        .whereRef('session.user_id', '=', 'person.id')
        .select(sql<number>`count(*)`.as('all'))
        .as('sessions'),
      select
        .selectFrom('passkey')
        .whereRef('passkey.user_id', '=', 'person.id')
        .select(sql<number>`count(*)`.as('all'))
        .as('passkeys'),
    ])
    .orderBy('person.created_at')
    .orderBy('person.id')
    .execute();
