import { sql, type Database } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';

export type SignUpRow = NonNullable<Awaited<ReturnType<typeof findSignUp>>>;

export const findSignUp = (db: Database, userId: string) =>
  db.selectFrom('sign_up').selectAll().where('user_id', '=', userId).executeTakeFirst();

/** Writes the sign-up record of a person, of which there is one: new answers replace it. */
export const saveSignUp = (db: Database, id: string, userId: string, answers: unknown) =>
  db
    .insertInto('sign_up')
    .values({ id, user_id: userId, answers: json(answers) })
    .onConflict((conflict) =>
      conflict.column('user_id').doUpdateSet({ answers: json(answers), updated_at: sql<Date>`now()` }),
    )
    .returningAll()
    .executeTakeFirstOrThrow();

/** Sets the names of a person for whom the identity provider gave none. */
export const nameAccount = (db: Database, userId: string, firstName: string, lastName: string) =>
  db
    .updateTable('user_account')
    .set({ first_name: firstName, last_name: lastName, updated_at: sql`now()` })
    .where('id', '=', userId)
    .where('first_name', '=', '')
    .where('last_name', '=', '')
    .execute();

export const findOnboarding = (db: Database, userId: string) =>
  db
    .selectFrom('user_account')
    .select(['onboarding_use_cases', 'onboarding_status'])
    .where('id', '=', userId)
    .executeTakeFirstOrThrow();

export const updateOnboarding = (db: Database, userId: string, status: string, useCases: string) =>
  db
    .updateTable('user_account')
    .set({ onboarding_status: status, onboarding_use_cases: useCases, updated_at: sql`now()` })
    .where('id', '=', userId)
    .execute();
