import type { Database, Scope } from '#platform/database/index.ts';

/** Containers of the organization that run images of a registry, in creation order. */
export const listContainersOfRegistry = (db: Database, scope: Scope, registryId: string) =>
  db
    .selectFrom('service')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('container_registry_id', '=', registryId)
    .where('kind', '=', 'CONTAINER')
    .orderBy('created_at')
    .orderBy('id')
    .execute();
