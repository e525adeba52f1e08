import { kindsWith } from '#kernel/kinds.ts';
import type { Principal } from '#platform/access/principal.ts';
import { visibleEnvironments } from '#platform/access/visibility.ts';
import { sql, type Database } from '#platform/database/index.ts';

/** Returns the type of a service's job by its schedule, CRON or LIFECYCLE; null for other kinds. `service` is its name in the statement. */
export const jobTypeOf = (service: string) =>
  sql<'CRON' | 'LIFECYCLE' | null>`case when ${sql.ref(`${service}.kind`)} = any(${kindsWith('scheduled')}) then
    case when ${sql.ref(`${service}.spec`)} -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end`;

/** Selects the services of an organization that the caller may see, with project and environment, in creation order. */
const selectVisibleServices = (db: Database, principal: Principal, organizationId: string) =>
  db
    .selectFrom('service')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .select(['service.id', 'service.name', 'service.description', 'service.icon_uri', 'service.kind'])
    .select(['environment.project_id', 'project.name as project_name', 'service.environment_id'])
    .select(['environment.name as environment_name', 'environment.cluster_id'])
    .select(jobTypeOf('service').as('job_type'))
    .where('service.organization_id', '=', organizationId)
    .where(visibleEnvironments(principal, organizationId, 'service.read'))
    .orderBy('service.created_at')
    .orderBy('service.id');

export type VisibleServiceRow = Awaited<
  ReturnType<ReturnType<typeof selectVisibleServices>['executeTakeFirstOrThrow']>
>;

export interface ServiceFilter {
  project_id?: string | null;
  environment_id?: string | null;
  cluster_id?: string;
}

export const listServices = (db: Database, principal: Principal, organizationId: string, filter: ServiceFilter) =>
  selectVisibleServices(db, principal, organizationId)
    .$if(filter.project_id != null, (query) => query.where('environment.project_id', '=', filter.project_id!))
    .$if(filter.environment_id != null, (query) => query.where('environment.id', '=', filter.environment_id!))
    .$if(filter.cluster_id !== undefined, (query) => query.where('environment.cluster_id', '=', filter.cluster_id!));

/** Resource that services may use: one of the fields is set. */
export interface Used {
  gitTokenId?: string;
  containerRegistryId?: string;
  helmRepositoryId?: string;
  /** Cluster whose Argo CD they are read from. */
  argoCdClusterId?: string;
}

/** Services that use a git token, a container registry or a Helm repository, or are read from an Argo CD. */
export function listServicesUsing(db: Database, principal: Principal, organizationId: string, used: Used) {
  const services = selectVisibleServices(db, principal, organizationId);
  if (used.gitTokenId)
    return services
      .where(({ eb, or }) =>
        or([
          eb('service.git_token_id', '=', used.gitTokenId!),
          eb('service.values_git_token_id', '=', used.gitTokenId!),
        ]),
      )
      .where('service.kind', 'in', kindsWith('usesGitTokens'));
  if (used.argoCdClusterId)
    return services.where('service.argo_cd_id', '=', (eb) =>
      eb
        .selectFrom('argo_cd')
        .select('argo_cd.id')
        .where('argo_cd.organization_id', '=', organizationId)
        .where('argo_cd.cluster_id', '=', used.argoCdClusterId!),
    );
  if (used.containerRegistryId) return services.where('service.container_registry_id', '=', used.containerRegistryId);
  return services.where('service.helm_repository_id', '=', used.helmRepositoryId!);
}

/** A service that uses something, as it is answered. */
export const toServiceUseView = (row: VisibleServiceRow) => ({
  project_id: row.project_id,
  project_name: row.project_name,
  environment_id: row.environment_id,
  environment_name: row.environment_name,
  service_id: row.id,
  service_name: row.name,
  service_type: row.job_type ?? row.kind,
});

/** A service in the list over the whole organization. */
export const toServiceLightView = (row: VisibleServiceRow) => ({
  id: row.id,
  name: row.name,
  description: row.description ?? '',
  icon_uri: row.icon_uri,
  service_type: row.kind,
  project_id: row.project_id,
  project_name: row.project_name,
  environment_id: row.environment_id,
  environment_name: row.environment_name,
  cluster_id: row.cluster_id,
  job_type: row.job_type ?? undefined,
});

/** Environments of an organization that the caller may see, in creation order. */
export const listEnvironments = (db: Database, principal: Principal, organizationId: string) =>
  db
    .selectFrom('environment')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where(visibleEnvironments(principal, organizationId))
    .orderBy('created_at')
    .orderBy('id');

type EnvironmentRow = Awaited<ReturnType<ReturnType<typeof listEnvironments>['executeTakeFirstOrThrow']>>;

export const toEnvironmentLightView = (row: EnvironmentRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: row.name,
  organization: { id: row.organization_id },
  project: { id: row.project_id },
  mode: row.mode,
  cluster_id: row.cluster_id,
});
