import { sql, type Database } from '#platform/database/index.ts';

export type AccountRow = NonNullable<Awaited<ReturnType<typeof findAccountById>>>;

/** Finds an account; `lock` keeps others from changing it until the commit. */
export const findAccountById = (db: Database, id: string, lock = false) =>
  db
    .selectFrom('user_account')
    .selectAll()
    .where('id', '=', id)
    .$if(lock, (query) => query.forNoKeyUpdate())
    .executeTakeFirst();

export const updateCommunicationEmail = (db: Database, id: string, communication_email: string) =>
  db
    .updateTable('user_account')
    .set({ communication_email, updated_at: sql`now()` })
    .where('id', '=', id)
    .execute();
