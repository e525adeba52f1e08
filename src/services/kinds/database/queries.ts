import { sql, type Database, type Scope } from '#platform/database/index.ts';

/** Keeps others from giving out ports on the environment's cluster until the commit. */
export const lockClusterOf = (db: Database, scope: Scope, environmentId: string) =>
  sql`select c.id from cluster c join environment e on e.cluster_id = c.id
    where e.organization_id = ${scope.organizationId} and e.id = ${environmentId} for no key update of c`.execute(db);

/** Ports that databases of the environment's cluster are published on. */
export async function listExternalPorts(db: Database, scope: Scope, environmentId: string): Promise<Set<number>> {
  const { rows } = await sql<{ port: number }>`
    select (s.spec -> 'access' ->> 'external_port')::int as port
    from environment own
    join environment e on e.cluster_id = own.cluster_id
    join service s on s.environment_id = e.id
    where own.organization_id = ${scope.organizationId} and own.id = ${environmentId}
      and s.kind = 'DATABASE' and s.spec -> 'access' ->> 'external_port' is not null`.execute(db);
  return new Set(rows.map((row) => row.port));
}
