import { sql, type Database } from '#platform/database/index.ts';

/** Kubernetes clusters of some organizations, in creation order. */
export const listKubernetesClusters = (db: Database, organizationIds: string[]) =>
  db
    .selectFrom('cluster')
    .select(['id', 'organization_id', 'name', 'cloud_provider'])
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('runtime', '=', 'kubernetes')
    .orderBy('created_at')
    .orderBy('id')
    .execute();
