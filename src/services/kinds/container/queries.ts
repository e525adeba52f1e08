import type { Principal } from '#platform/access/principal.ts';
import { visibleEnvironments } from '#platform/access/visibility.ts';
import type { Database, Scope } from '#platform/database/index.ts';

/** Containers that run images of a registry and that the caller may see, in creation order. */
export const listContainersOfRegistry = (db: Database, principal: Principal, scope: Scope, registryId: string) =>
  db
    .selectFrom('service')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .select('service.id')
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.container_registry_id', '=', registryId)
    .where('service.kind', '=', 'CONTAINER')
    .where(visibleEnvironments(principal, scope.organizationId, 'service.read'))
    .orderBy('service.created_at')
    .orderBy('service.id')
    .execute();
