import { sql, type Database, type Scope } from '#platform/database/index.ts';

export type CustomDomainRow = NonNullable<Awaited<ReturnType<typeof findDomain>>>;

/** Domains of a service in creation order. */
export const listDomainsByService = (db: Database, scope: Scope, serviceId: string) =>
  db
    .selectFrom('custom_domain')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .orderBy('created_at')
    .orderBy('id');

/** Domains of several services in creation order. */
export const listDomainsByServices = (db: Database, scope: Scope, serviceIds: string[]) =>
  db
    .selectFrom('custom_domain')
    .select(['service_id', 'domain', 'generate_certificate'])
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', sql<string>`any(${serviceIds})`)
    .orderBy('created_at')
    .orderBy('id')
    .execute();

export const findDomain = (db: Database, scope: Scope, serviceId: string, id: string) =>
  db
    .selectFrom('custom_domain')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .where('id', '=', id)
    .executeTakeFirst();

/** Which service has a domain, whoever's it is: names are unique over the installation. */
export const findHolderOfDomain = (db: Database, domain: string) =>
  db
    .selectFrom('custom_domain')
    .select(['organization_id', 'service_id'])
    .where('domain', '=', domain)
    .executeTakeFirst();

export const countDomains = (db: Database, scope: Scope, serviceId: string) =>
  db
    .selectFrom('custom_domain')
    .select(sql<number>`count(*)`.as('number'))
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .executeTakeFirstOrThrow();

export interface DomainChange {
  domain: string;
  generate_certificate: boolean;
  use_cdn: boolean;
}

/** Inserts nothing when the name is taken: a broken constraint would end the transaction that still has to say whose it is. */
export const insertDomain = (
  db: Database,
  domain: DomainChange & { id: string; organization_id: string; service_id: string },
) =>
  db
    .insertInto('custom_domain')
    .values(domain)
    .onConflict((conflict) => conflict.column('domain').doNothing())
    .returningAll()
    .executeTakeFirst();

export const updateDomain = (
  db: Database,
  scope: Scope,
  id: string,
  change: DomainChange & { validated_at: Date | null },
) =>
  db
    .updateTable('custom_domain')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();

/** Records what a look at the DNS has shown. */
export const recordValidation = (db: Database, scope: Scope, id: string, at: Date | null) =>
  db
    .updateTable('custom_domain')
    .set({ validated_at: at })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteDomain = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('custom_domain').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();
