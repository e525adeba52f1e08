import { inOrder, sql, type Database, type Scope } from '#platform/database/index.ts';

export type RestrictionRow = NonNullable<Awaited<ReturnType<typeof findRestriction>>>;

/** Restrictions of a service in creation order. */
export const listRestrictionsByService = (db: Database, scope: Scope, serviceId: string) =>
  db
    .selectFrom('deployment_restriction')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .orderBy('created_at')
    .orderBy('id');

/** Restrictions of several services. */
export const listRestrictionsByServices = (db: Database, scope: Scope, serviceIds: string[]) =>
  db
    .selectFrom('deployment_restriction')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', sql<string>`any(${serviceIds})`)
    .orderBy('created_at')
    .orderBy('id')
    .execute();

export const findRestriction = (db: Database, scope: Scope, serviceId: string, id: string) =>
  db
    .selectFrom('deployment_restriction')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .where('id', '=', id)
    .executeTakeFirst();

export interface NewRestriction {
  id: string;
  organization_id: string;
  service_id: string;
  mode: string;
  type: string;
  value: string;
}

export const insertRestrictions = (db: Database, restrictions: NewRestriction[]) =>
  db
    .insertInto('deployment_restriction')
    .values(restrictions.map((restriction, index) => ({ ...restriction, created_at: inOrder(index) })))
    .returningAll()
    .execute();

export const updateRestriction = (
  db: Database,
  scope: Scope,
  id: string,
  change: { mode: string; type: string; value: string },
) =>
  db
    .updateTable('deployment_restriction')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();

export const deleteRestriction = (db: Database, scope: Scope, id: string) =>
  db
    .deleteFrom('deployment_restriction')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();
