import { sql, type Database, type Scope } from '#platform/database/index.ts';
import type { GitSource } from '#services/sources/git.ts';
import { selectServices } from '#services/service/queries.ts';

/** Condition on services with `auto_deploy`, as the index has it. */
export const DEPLOYS_ITSELF = sql<boolean>`coalesce(service.spec ->> 'auto_deploy', service.spec -> 'auto_deploy_config' ->> 'auto_deploy') = 'true'`;

/** Services of an organization with `auto_deploy`, those of an environment beside each other. */
export const listAutoDeployed = (db: Database, scope: Scope) =>
  selectServices(db)
    .where('service.organization_id', '=', scope.organizationId)
    .where(DEPLOYS_ITSELF)
    .where('service.deleting', '=', false)
    .where('environment.deleting', '=', false)
    .orderBy('service.environment_id')
    .orderBy('service.id')
    .execute();

/** Sources of an organization's services without `auto_deploy` whose repository has a name. */
export const listOtherSources = (db: Database, scope: Scope, name: string) =>
  db
    .selectFrom('service')
    .select(['id', sql<GitSource>`spec -> 'git_repository'`.as('source')])
    .where('organization_id', '=', scope.organizationId)
    .where(sql<boolean>`lower(spec -> 'git_repository' ->> 'name') = ${name}`)
    .where(sql<boolean>`not coalesce(${DEPLOYS_ITSELF}, false)`)
    .where('observed', 'is', null)
    .execute();

/** Counts those services that are there and are not being deleted. */
export async function countPresent(db: Database, scope: Scope, ids: string[]): Promise<number> {
  const row = await db
    .selectFrom('service')
    .select(sql<number>`count(*)::int`.as('present'))
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${ids})`)
    .where('deleting', '=', false)
    .executeTakeFirstOrThrow();
  return row.present;
}

/** Locks services until the commit, in the order of their ids. */
export const lockServices = (db: Database, scope: Scope, ids: string[]) =>
  db
    .selectFrom('service')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${ids})`)
    .orderBy('id')
    .forNoKeyUpdate()
    .execute();

/** Records the newest commit of services: those that run another one are out of date. */
export const setNewestCommit = (db: Database, scope: Scope, ids: string[], commit: string) =>
  db
    .updateTable('service')
    .set({ newest_commit: commit })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${ids})`)
    .where(sql<boolean>`newest_commit is distinct from ${commit}`)
    .execute();

/** Services whose last deployment has removed them. */
export async function listUninstalled(db: Database, scope: Scope, ids: string[]): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select s.id from service s where s.organization_id = ${scope.organizationId} and s.id = any(${ids}) and s.wanted = 'absent'
      and (select d.action from deployment_service d where d.service_id = s.id order by d.number desc limit 1)
        in ('UNINSTALL', 'DELETE')`.execute(db);
  return rows.map(({ id }) => id);
}

/** Services that a deployment of the environment which has not ended has. */
export async function listUnderWay(db: Database, scope: Scope, environmentId: string): Promise<Set<string>> {
  const rows = await db
    .selectFrom('deployment_service')
    .innerJoin('deployment', 'deployment.id', 'deployment_service.deployment_id')
    .select('deployment_service.service_id')
    .where('deployment.organization_id', '=', scope.organizationId)
    .where('deployment.environment_id', '=', environmentId)
    .where('deployment.status', '<>', 'ENDED')
    .execute();
  return new Set(rows.map((row) => row.service_id));
}
