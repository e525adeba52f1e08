import type { Insertable, Updateable } from 'kysely';
import { sql, type Database, type DB, type Scope } from '#platform/database/index.ts';

export type AlertReceiverRow = NonNullable<Awaited<ReturnType<typeof findAlertReceiverById>>>;

/** Receivers of an organization in creation order. */
export const listAlertReceivers = (db: Database, scope: Scope) =>
  db
    .selectFrom('alert_receiver')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .orderBy('created_at')
    .orderBy('id');

export const countAlertReceivers = (db: Database, scope: Scope) =>
  db
    .selectFrom('alert_receiver')
    .select(sql<number>`count(*)`.as('receivers'))
    .where('organization_id', '=', scope.organizationId)
    .executeTakeFirstOrThrow();

export const findAlertReceiverById = (db: Database, organizationIds: string[], id: string, lock = false) => {
  const query = db
    .selectFrom('alert_receiver')
    .selectAll()
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id);
  return (lock ? query.forUpdate() : query).executeTakeFirst();
};

export const insertAlertReceiver = (db: Database, row: Insertable<DB['alert_receiver']>) =>
  db.insertInto('alert_receiver').values(row).returningAll().executeTakeFirstOrThrow();

export const updateAlertReceiver = (db: Database, scope: Scope, id: string, change: Updateable<DB['alert_receiver']>) =>
  db
    .updateTable('alert_receiver')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();

export const deleteAlertReceiverRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('alert_receiver').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();
