import { kindsWith } from '#kernel/kinds.ts';
import type { Principal } from '#platform/access/principal.ts';
import { visibleEnvironments } from '#platform/access/visibility.ts';
import type { Context } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import { environmentStatuses } from '#deployments/index.ts';
import type { ProjectTarget } from '#resources/project/index.ts';

/** Environments of a project with cluster, number of services and status, in two statements. */
export async function listOverview(context: Context, principal: Principal, project: ProjectTarget) {
  const rows = await context.db
    .selectFrom('environment')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .leftJoin('service', 'service.environment_id', 'environment.id')
    .select([
      'environment.id',
      'environment.created_at',
      'environment.updated_at',
      'environment.name',
      'environment.mode',
    ])
    .select(['cluster.id as cluster_id', 'cluster.name as cluster_name', 'cluster.cloud_provider'])
    .select([
      sql<number>`count(service.id)`.as('services'),
      sql<number>`count(service.id) filter (where service.kind = any(${kindsWith('observed')}))`.as('argo'),
    ])
    .where('environment.organization_id', '=', project.organizationId)
    .where('environment.project_id', '=', project.id)
    .where(visibleEnvironments(principal, project.organizationId))
    .groupBy(['environment.id', 'cluster.id'])
    .orderBy('environment.created_at')
    .orderBy('environment.id')
    .execute();
  const statuses = new Map(
    (
      await environmentStatuses(
        context.db,
        project,
        rows.map((row) => row.id),
      )
    ).map((status) => [status.id, status]),
  );
  return {
    results: rows.map((row) => ({
      id: row.id,
      created_at: row.created_at.toISOString(),
      updated_at: row.updated_at.toISOString(),
      name: row.name,
      mode: row.mode,
      cluster: { id: row.cluster_id, name: row.cluster_name, cloud_provider: row.cloud_provider, is_demo: false },
      services_overview: {
        service_count: row.services,
        managed_by: row.argo === 0 ? 'QOVERY' : row.argo === row.services ? 'ARGOCD' : 'MIXED',
      },
      deployment_status: statuses.get(row.id) ?? null,
    })),
  };
}
