import type { Database, Scope } from '#platform/database/index.ts';

/** Services on a cluster that were deployed and should run, in creation order, with what an answer names of them. */
export const listDeployedOn = async (db: Database, scope: Scope, clusterId: string) => {
  const rows = await db
    .selectFrom('service')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .select(['service.id as serviceId', 'service.name as serviceName', 'service.handle'])
    .select(['environment.id as environmentId', 'environment.name as environmentName', 'environment.mode'])
    .select(['project.id as projectId', 'project.name as projectName'])
    .where('service.organization_id', '=', scope.organizationId)
    .where('environment.cluster_id', '=', clusterId)
    .where('service.wanted', '=', 'running')
    .where('service.handle', 'is not', null)
    .orderBy('service.created_at')
    .orderBy('service.id')
    .execute();
  return rows.map((row) => ({ ...row, organizationId: scope.organizationId }));
};
