import { sql, type Database, type Scope } from '#platform/database/index.ts';

export type ProofState = 'PENDING' | 'VALIDATED' | 'EXPIRED' | 'LOST';

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
    .select(['service_id', 'domain', 'generate_certificate', 'proof_state'])
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

/** Finds the service of the organization that has a domain. An organization claims a name once. */
export const findHolderOfDomain = (db: Database, scope: Scope, domain: string) =>
  db
    .selectFrom('custom_domain')
    .select(['organization_id', 'service_id'])
    .where('organization_id', '=', scope.organizationId)
    .where('domain', '=', domain)
    .executeTakeFirst();

/** Finds the claim that has proven a domain. The installation has at most one. */
export const findProvenDomain = (db: Database, domain: string) =>
  db
    .selectFrom('custom_domain')
    .selectAll()
    .where('domain', '=', domain)
    .where('proof_state', '=', 'VALIDATED')
    .executeTakeFirst();

/** Key that the TXT records of an organization are made with. */
export const findDomainKey = async (db: Database, scope: Scope) =>
  (
    await db
      .selectFrom('organization')
      .select('domain_key')
      .where('id', '=', scope.organizationId)
      .executeTakeFirstOrThrow()
  ).domain_key;

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

/** Fields of a claim that are reset with a new name. */
export interface DomainClaim {
  challenge: string;
  validated_at: null;
  claimed_at: Date;
  proof_state: 'PENDING';
  proof_checked_at: null;
  proven_at: null;
  proof_missing_since: null;
  proof_error: null;
  certificate_state: null;
  certificate_expires_at: null;
  certificate_error: null;
}

/** Inserts nothing when the name is taken: a broken constraint would end the transaction that still has to say whose it is. */
export const insertDomain = (
  db: Database,
  domain: DomainChange & { id: string; organization_id: string; service_id: string; challenge: string },
) =>
  db
    .insertInto('custom_domain')
    .values(domain)
    .onConflict((conflict) => conflict.columns(['organization_id', 'domain']).doNothing())
    .returningAll()
    .executeTakeFirst();

export const updateDomain = (db: Database, scope: Scope, id: string, change: DomainChange & Partial<DomainClaim>) =>
  db
    .updateTable('custom_domain')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();

/** Records the result of a check of the DNS. */
export const recordValidation = (db: Database, scope: Scope, id: string, at: Date | null) =>
  db
    .updateTable('custom_domain')
    .set({ validated_at: at })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteDomain = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('custom_domain').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

/** Columns that a check of the TXT record changes. */
export interface ProofChange {
  proof_state: ProofState;
  proof_checked_at: Date;
  proof_error: string | null;
  proven_at?: Date;
  proof_missing_since?: Date | null;
}

export const recordProof = (db: Database, scope: Scope, id: string, change: ProofChange) =>
  db
    .updateTable('custom_domain')
    .set(change)
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();

/**
 * Lists the claims whose TXT record is due. Claims without proof are due ever more seldom, from each minute to each hour; proven claims
 * every six hours, or each hour while the record is missing. Organizations take turns, so that many claims of one delay no other.
 */
export const listDueClaims = (db: Database, limit: number) =>
  db
    .selectFrom((due) =>
      due
        .selectFrom('custom_domain')
        .selectAll()
        .select(
          sql<number>`row_number() over (partition by organization_id order by proof_checked_at nulls first)`.as(
            'turn',
          ),
        )
        .where(
          sql<boolean>`proof_state = 'PENDING' and (proof_checked_at is null
              or proof_checked_at < now() - least(interval '1 hour', greatest(interval '55 seconds', (now() - claimed_at) / 20)))
            or proof_state = 'VALIDATED' and proof_checked_at
              < now() - case when proof_missing_since is null then interval '6 hours' else interval '1 hour' end`,
        )
        .as('due'),
    )
    .selectAll()
    .orderBy('turn')
    .orderBy(sql`proof_checked_at nulls first`)
    .limit(limit)
    .execute();

/** Deletes the record of all other domains of a service. It is not sent: it goes with the end of a successful deployment. */
export const deleteOtherRoutedDomains = (db: Database, scope: Scope, serviceId: string, domains: string[]) =>
  db
    .deleteFrom('routed_domain')
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .where('domain', '<>', sql<string>`all(${domains}::text[])`);

/**
 * Records domains that a service's workload is about to be applied with. The earlier ones stay: where the workload fails, the last release
 * keeps their routes.
 */
export const addRoutedDomains = async (db: Database, scope: Scope, serviceId: string, domains: string[]) => {
  if (domains.length === 0) return;
  await sql`
    insert into routed_domain (organization_id, service_id, domain)
    select organization_id, id, unnest(${domains}::text[]) from service
    where organization_id = ${scope.organizationId} and id = ${serviceId}
    on conflict do nothing`.execute(db);
};

/**
 * Lists running services that still route a domain which another service has proven since. Services with a request under way are left out.
 */
export const listServicesToUnroute = (db: Database) =>
  db
    .selectFrom('routed_domain')
    .innerJoin('custom_domain', 'custom_domain.domain', 'routed_domain.domain')
    .innerJoin('service', 'service.id', 'routed_domain.service_id')
    .select(['service.id', 'service.organization_id', 'service.environment_id'])
    .distinct()
    .where('custom_domain.proof_state', '=', 'VALIDATED')
    .whereRef('custom_domain.service_id', '<>', 'routed_domain.service_id')
    .where('service.wanted', '=', 'running')
    .where('service.deleting', '=', false)
    .where(
      sql<boolean>`not exists (select from deployment_service ds join deployment d on d.id = ds.deployment_id
        where ds.service_id = service.id
          and (d.status <> 'ENDED' or (d.trigger = 'ROLLBACK' and d.automatic and d.ended_at > now() - interval '10 minutes')))`,
    )
    .execute();

/** Lists proven domains that need a certificate, on clusters of a node and on clusters that it watches. */
export const listCertificateDomains = (db: Database, nodeId: string) =>
  db
    .selectFrom('custom_domain')
    .innerJoin('service', 'service.id', 'custom_domain.service_id')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .select(['custom_domain.id', 'custom_domain.organization_id', 'custom_domain.domain'])
    .select(['certificate_state', 'certificate_expires_at', 'certificate_error'])
    .select(['cluster.id as cluster_id', 'cluster.runtime', sql<boolean>`cluster.node_id is null`.as('is_apart')])
    .where(sql<boolean>`coalesce(cluster.node_id, cluster.watched_by) = ${nodeId}`)
    .where('custom_domain.generate_certificate', '=', true)
    .where('custom_domain.proof_state', '=', 'VALIDATED')
    .execute();

/** Records the state of a certificate, unless the domain was renamed meanwhile. */
export const recordCertificate = (
  db: Database,
  scope: Scope,
  domain: { id: string; domain: string },
  change: { certificate_state: string; certificate_expires_at: Date | null; certificate_error: string | null },
) =>
  db
    .updateTable('custom_domain')
    .set(change)
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', domain.id)
    .where('domain', '=', domain.domain)
    .execute();
