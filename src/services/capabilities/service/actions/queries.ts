import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { SERVICE_METADATA } from '#resources/metadata-group/index.ts';

/** Lists the rows that a deployment's snapshot is made from: configuration, stage and versions of each service. */
export const listForSnapshot = (db: Database, scope: Scope, environmentId: string, serviceIds: string[] | null) => {
  const query = db
    .selectFrom('service')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .innerJoin('deployment_stage as stage', 'stage.id', 'service.stage_id')
    .select([
      'service.id',
      'service.kind',
      'service.name',
      'service.icon_uri',
      'service.spec',
      'service.advanced_settings',
      'service.is_skipped',
      'service.requires',
      'service.details',
    ])
    .select([
      'service.version',
      'service.wanted',
      'service.release_id',
      'service.deleting',
      'service.observed',
      'environment.version as environment_version',
      'environment.fork_ref',
      'environment.fork_commit',
    ])
    .select([
      'cluster.name as cluster_name',
      'cluster.runtime as cluster_runtime',
      'cluster.capabilities as cluster_capabilities',
      'project.version as project_version',
      'stage.id as stage_id',
      'stage.name as stage_name',
      'stage.position as stage_position',
    ])
    .select(SERVICE_METADATA.as('metadata'))
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.environment_id', '=', environmentId)
    .orderBy('service.created_at')
    .orderBy('service.id');
  return (serviceIds === null ? query : query.where('service.id', '=', sql<string>`any(${serviceIds})`)).execute();
};

export type SnapshotRow = Awaited<ReturnType<typeof listForSnapshot>>[number];

/** Lists the services that were never applied and have nothing under way. Deleting them needs no deployment. */
export const listNeverApplied = async (db: Database, scope: Scope, serviceIds: string[]): Promise<string[]> => {
  const rows = await db
    .selectFrom('service')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${serviceIds})`)
    .where('wanted', '=', 'absent')
    .where('handle', 'is', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('deployment_service')
            .innerJoin('deployment', 'deployment.id', 'deployment_service.deployment_id')
            .select('deployment.id')
            .whereRef('deployment_service.service_id', '=', 'service.id')
            // A run of a service that was never deployed may have left its container.
            .where(({ or, and, eb }) =>
              or([
                eb('deployment.status', '<>', 'ENDED'),
                and([eb('deployment.action', '=', 'RUN'), eb('deployment_service.started_at', 'is not', null)]),
              ]),
            ),
        ),
      ),
    )
    .execute();
  return rows.map((row) => row.id);
};

export const deleteServices = (db: Database, scope: Scope, serviceIds: string[]) =>
  db
    .deleteFrom('service')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${serviceIds})`)
    .execute();

export const markServicesDeleting = (db: Database, scope: Scope, serviceIds: string[]) =>
  db
    .updateTable('service')
    .set({ deleting: true })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${serviceIds})`)
    .execute();

export const lockEnvironmentRow = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('environment')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .forUpdate()
    .execute();
