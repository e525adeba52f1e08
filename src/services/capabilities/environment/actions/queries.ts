import { type Database, type Scope } from '#platform/database/index.ts';
import { findServiceById, lockService, type ServiceRow } from '#services/service/queries.ts';

/** Finds and locks a service of a kind in an environment. */
export const findOfEnvironment = async (
  db: Database,
  scope: Scope,
  environmentId: string,
  kind: string,
  id: string,
): Promise<ServiceRow | undefined> => {
  await lockService(db, [scope.organizationId], id);
  const row = await findServiceById(db, [scope.organizationId], id);
  return row?.environment_id === environmentId && row.kind === kind ? row : undefined;
};

export const markEnvironmentDeleting = (db: Database, scope: Scope, id: string) =>
  db
    .updateTable('environment')
    .set({ deleting: true })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteEnvironmentRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('environment').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

/**
 * Lists and locks the environments of a project, ordered by cluster: requests on several clusters take the numbers of their queues in one
 * order.
 */
export const listEnvironmentsOfProject = (db: Database, scope: Scope, projectId: string) =>
  db
    .selectFrom('environment')
    .select(['id', 'mode'])
    .where('organization_id', '=', scope.organizationId)
    .where('project_id', '=', projectId)
    .orderBy('cluster_id')
    .orderBy('id')
    .forUpdate()
    .execute();

/** Lists the environments on a cluster with a running service. */
export const listRunningOn = (db: Database, { organizationId }: Scope, clusterId: string) =>
  db
    .selectFrom('environment')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('cluster_id', '=', clusterId)
    .where('deleting', '=', false)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('service')
          .select('service.id')
          .whereRef('service.environment_id', '=', 'environment.id')
          .where('service.organization_id', '=', organizationId)
          .where('service.wanted', '=', 'running'),
      ),
    )
    .orderBy('id')
    .execute();
