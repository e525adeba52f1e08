import type { Database, Scope } from '#platform/database/index.ts';

/** Columns of a filter's target that access is decided by. */
export interface Place {
  project_id: string;
  environment_id: string | null;
  mode: string | null;
  cluster_id: string | null;
}

export const findProjectPlace = (db: Database, scope: Scope, id: string): Promise<Place | undefined> =>
  db
    .selectFrom('project')
    .select(({ lit, cast }) => [
      'id as project_id',
      cast<string | null>(lit(null), 'uuid').as('environment_id'),
      cast<string | null>(lit(null), 'text').as('mode'),
      cast<string | null>(lit(null), 'uuid').as('cluster_id'),
    ])
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirst();

export const findEnvironmentPlace = (db: Database, scope: Scope, id: string): Promise<Place | undefined> =>
  db
    .selectFrom('environment')
    .select(['project_id', 'id as environment_id', 'mode', 'cluster_id'])
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirst();

export const findDeploymentPlace = (db: Database, scope: Scope, id: string): Promise<Place | undefined> =>
  db
    .selectFrom('deployment')
    .innerJoin('environment', 'environment.id', 'deployment.environment_id')
    .select([
      'environment.project_id',
      'environment.id as environment_id',
      'environment.mode',
      'environment.cluster_id',
    ])
    .where('deployment.organization_id', '=', scope.organizationId)
    .where('deployment.id', '=', id)
    .executeTakeFirst();

/**
 * Finds the place of a service or, once it is deleted, of its last deployment. A client that watches a deletion may resume after its end.
 */
export const findServicePlace = async (db: Database, scope: Scope, id: string): Promise<Place | undefined> =>
  (await db
    .selectFrom('service')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .select([
      'environment.project_id',
      'environment.id as environment_id',
      'environment.mode',
      'environment.cluster_id',
    ])
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.id', '=', id)
    .executeTakeFirst()) ??
  (await db
    .selectFrom('deployment_service')
    .innerJoin('environment', 'environment.id', 'deployment_service.environment_id')
    .select([
      'environment.project_id',
      'environment.id as environment_id',
      'environment.mode',
      'environment.cluster_id',
    ])
    .where('deployment_service.organization_id', '=', scope.organizationId)
    .where('deployment_service.service_id', '=', id)
    .orderBy('deployment_service.number', 'desc')
    .limit(1)
    .executeTakeFirst());
