import type { StateReading } from '#kernel/parsing/formats.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';

/** Number of plans that are kept of a service. */
const KEPT_PLANS = 20;

/** Runtime of the cluster that an environment is on. */
export const findRuntime = (db: Database, scope: Scope, environmentId: string) =>
  db
    .selectFrom('environment')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .select(['cluster.id', 'cluster.runtime'])
    .where('environment.organization_id', '=', scope.organizationId)
    .where('environment.id', '=', environmentId)
    .executeTakeFirst();

/** Returns the configuration of the last release, which was applied with success. */
export const findReleasedSpec = async (db: Database, scope: Scope, serviceId: string) => {
  const row = await db
    .selectFrom('service')
    .innerJoin('release', 'release.id', 'service.release_id')
    .select('release.snapshot')
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.id', '=', serviceId)
    .executeTakeFirst();
  return (row?.snapshot as { spec?: unknown } | undefined)?.spec;
};

export const insertPlan = (
  db: Database,
  scope: Scope,
  plan: { serviceId: string; deploymentId: string; applied: boolean; commitId: string | null; content: string },
) =>
  db
    .insertInto('terraform_plan')
    .values({
      deployment_id: plan.deploymentId,
      service_id: plan.serviceId,
      organization_id: scope.organizationId,
      applied: plan.applied,
      commit_id: plan.commitId,
      content: plan.content,
    })
    .onConflict((conflict) =>
      conflict.columns(['service_id', 'deployment_id']).doUpdateSet({ applied: plan.applied, content: plan.content }),
    )
    .execute();

export const deleteOldPlans = (db: Database, scope: Scope, serviceId: string) =>
  db
    .deleteFrom('terraform_plan')
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .where('deployment_id', 'not in', (inner) =>
      inner
        .selectFrom('terraform_plan')
        .select('deployment_id')
        .where('organization_id', '=', scope.organizationId)
        .where('service_id', '=', serviceId)
        .orderBy('created_at', 'desc')
        .limit(KEPT_PLANS),
    )
    .execute();

/** Finds the newest plan, or that of one deployment request. */
export const findPlan = (db: Database, scope: Scope, serviceId: string, deploymentId: string | null) => {
  const query = db
    .selectFrom('terraform_plan')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .orderBy('created_at', 'desc')
    .limit(1);
  return (deploymentId ? query.where('deployment_id', '=', deploymentId) : query).executeTakeFirst();
};

/** Lists the resources of the last state that was read, by address. */
export const listResources = (db: Database, scope: Scope, serviceId: string) =>
  db
    .selectFrom('terraform_resource')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .orderBy('address')
    .execute();

/**
 * Replaces the resources of a service by those of a state; resources with the same address keep their ids. Their texts go to the database
 * as they came from the thread that read them.
 */
export async function replaceResources(
  db: Database,
  scope: Scope,
  serviceId: string,
  { resources }: Pick<StateReading, 'resources'>,
): Promise<void> {
  const { rows } = await sql<{ began: Date }>`select now() as began`.execute(db);
  for (const part of resources) await upsertResources(db, scope, serviceId, part);
  await db
    .deleteFrom('terraform_resource')
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .where('extracted_at', '<', rows[0]!.began)
    .execute();
}

const upsertResources = (db: Database, scope: Scope, serviceId: string, part: string) =>
  sql`
    insert into terraform_resource (id, organization_id, service_id, address, resource_type, name, provider, mode, attributes)
    select gen_random_uuid(), ${scope.organizationId}, ${serviceId}, address, type, name, provider, mode, attributes
    from jsonb_to_recordset(${part}::jsonb)
      as one (address text, type text, name text, provider text, mode text, attributes jsonb)
    on conflict (service_id, address) do update set resource_type = excluded.resource_type, name = excluded.name,
      provider = excluded.provider, mode = excluded.mode, attributes = excluded.attributes, extracted_at = now()`.execute(
    db,
  );
