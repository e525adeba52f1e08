import type { Principal } from '#platform/access/principal.ts';
import { visibleEnvironments } from '#platform/access/visibility.ts';
import { sql, type Database } from '#platform/database/index.ts';

export const findAccessById = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('secret_manager_access')
    .select(['id', 'name', 'organization_id', 'cluster_id'])
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .executeTakeFirst();

export type ExternalSecretRow = Awaited<ReturnType<ReturnType<typeof listExternalSecrets>['executeTakeFirstOrThrow']>>;

/**
 * Variables that read from an access, with the environment that they reach, in creation order: a project's variable is in it once for each
 * of its environments. Environments that the caller may not see are left out.
 */
export const listExternalSecrets = (db: Database, principal: Principal, organizationId: string, accessId: string) =>
  db
    .selectFrom('variable')
    .leftJoin('service', 'service.id', 'variable.service_id')
    .innerJoin('environment', (join) =>
      join.on(
        sql<boolean>`environment.organization_id = variable.organization_id and (
          environment.id = coalesce(variable.environment_id, service.environment_id)
          or environment.project_id = variable.project_id)`,
      ),
    )
    .innerJoin('project', 'project.id', 'environment.project_id')
    .select(['project.id as project_id', 'project.name as project_name'])
    .select(['environment.id as environment_id', 'environment.name as environment_name'])
    .select(['service.id as service_id', 'service.name as service_name'])
    .select(['variable.scope', 'variable.key', 'variable.value'])
    .where('variable.organization_id', '=', organizationId)
    .where('variable.secret_manager_access_id', '=', accessId)
    .where(visibleEnvironments(principal, organizationId, 'variable.read'))
    .orderBy('variable.created_at')
    .orderBy('variable.id')
    .orderBy('environment.created_at')
    .orderBy('environment.id');
