import { displayName, subjectHere } from '#platform/access/people.ts';
import { sql, type Database } from '#platform/database/index.ts';
import type { StoredPassword } from '#resources/sign-in/passwords.ts';

const selectSignIn = (db: Database) =>
  db.selectFrom('sign_in').select(['user_id', 'name', 'password_hash', 'password_salt', 'memory_kib', 'passes']);

/** Finds who signs in with a name, in upper or lower case. */
export const findByName = (db: Database, name: string) =>
  selectSignIn(db)
    .where(sql`lower(name collate "C")`, '=', name.toLowerCase())
    .executeTakeFirst();

export const findByUser = (db: Database, userId: string) =>
  selectSignIn(db).where('user_id', '=', userId).executeTakeFirst();

/** Finds the password of a person and keeps it from changing until the commit. */
export const lockByUser = (db: Database, userId: string) =>
  selectSignIn(db).where('user_id', '=', userId).forUpdate().executeTakeFirst();

/** Sets name and password of a person; an earlier password is replaced. */
export const saveSignIn = (db: Database, userId: string, name: string, password: StoredPassword) =>
  db
    .insertInto('sign_in')
    .values({ user_id: userId, name, ...password })
    .onConflict((conflict) =>
      conflict.column('user_id').doUpdateSet({ name, ...password, updated_at: sql<Date>`now()` }),
    )
    .execute();

export const updatePassword = (db: Database, userId: string, password: StoredPassword) =>
  db
    .updateTable('sign_in')
    .set({ ...password, updated_at: sql`now()` })
    .where('user_id', '=', userId)
    .execute();

/** Removes the password of a person, and with it their sessions. */
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

export const deleteLinkOf = (db: Database, userId: string) =>
  db.deleteFrom('sign_in_link').where('user_id', '=', userId).execute();

export const deleteEveryLink = (db: Database) => db.deleteFrom('sign_in_link').execute();

export const removeOldLinks = (db: Database, now: Date) =>
  db.deleteFrom('sign_in_link').where('expires_at', '<=', now).execute();

/** Lists the people of the installation with what they sign in with, their organizations and their sessions. */
export const listPeople = (db: Database) =>
  db
    .selectFrom('user_account as person')
    .leftJoin('sign_in', 'sign_in.user_id', 'person.id')
    .select(['person.id', 'person.subject', 'person.nickname', 'person.first_name', 'person.last_name', 'person.email'])
    .select(['person.last_activity_at', 'sign_in.name as sign_in_name'])
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
    ])
    .orderBy('person.created_at')
    .orderBy('person.id')
    .execute();
