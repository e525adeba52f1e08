import { sql, type Database } from '#platform/database/index.ts';

export type AccountRow = NonNullable<Awaited<ReturnType<typeof findAccountById>>>;

export const findAccountById = (db: Database, id: string) =>
  db.selectFrom('user_account').selectAll().where('id', '=', id).executeTakeFirst();

export const updateCommunicationEmail = (db: Database, id: string, communication_email: string) =>
  db
    .updateTable('user_account')
    .set({ communication_email, updated_at: sql`now()` })
    .where('id', '=', id)
    .execute();
