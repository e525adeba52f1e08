import { sql, type Database, type Scope } from '#platform/database/index.ts';
import type { ScheduleColumns } from '#resources/deployment-rule/hours.ts';
import type { ContentOfPreview } from '#resources/deployment-rule/schema.ts';

export interface ProjectRuleColumns extends ScheduleColumns {
  name: string;
  description: string | null;
  mode: string;
  cluster_id: string;
  wildcard: string;
}

/** Rules of a project in their order. */
export const listProjectRules = (db: Database, scope: Scope, projectId: string) =>
  db
    .selectFrom('project_deployment_rule')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('project_id', '=', projectId)
    .orderBy('position');

export type ProjectRuleRow = Awaited<ReturnType<ReturnType<typeof listProjectRules>['execute']>>[number];

export const findProjectRule = (db: Database, scope: Scope, projectId: string, id: string) =>
  listProjectRules(db, scope, projectId).where('id', '=', id).executeTakeFirst();

/** Inserts a rule behind the present ones; the project's row is locked. */
export const insertProjectRule = (
  db: Database,
  rule: ProjectRuleColumns & { id: string; organization_id: string; project_id: string },
) =>
  db
    .insertInto('project_deployment_rule')
    .values({
      ...rule,
      position: sql<number>`(select coalesce(max(position), -1) + 1 from project_deployment_rule
        where organization_id = ${rule.organization_id} and project_id = ${rule.project_id})`,
    })
    .execute();

export const updateProjectRule = (db: Database, scope: Scope, id: string, change: ProjectRuleColumns) =>
  db
    .updateTable('project_deployment_rule')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteProjectRuleRow = (db: Database, scope: Scope, id: string) =>
  db
    .deleteFrom('project_deployment_rule')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const orderProjectRules = (db: Database, scope: Scope, ids: string[]) =>
  sql`update project_deployment_rule set position = place.position - 1
    from unnest(${ids}::uuid[]) with ordinality as place (id, position)
    where project_deployment_rule.organization_id = ${scope.organizationId} and project_deployment_rule.id = place.id`.execute(
    db,
  );

export const findClusterOf = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('cluster')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirst();

export interface EnvironmentRuleColumns extends ScheduleColumns {
  auto_preview: boolean;
  on_demand_preview: boolean;
  preview_databases: ContentOfPreview;
  next_at: Date | null;
  set_by: string | null;
  set_with: string | null;
}

export const findEnvironmentRule = (db: Database, scope: Scope, environmentId: string) =>
  db
    .selectFrom('environment_deployment_rule')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('environment_id', '=', environmentId)
    .executeTakeFirst();

export type EnvironmentRuleRow = NonNullable<Awaited<ReturnType<typeof findEnvironmentRule>>>;

export const insertEnvironmentRule = (
  db: Database,
  rule: { id: string; organization_id: string; environment_id: string } & Partial<EnvironmentRuleColumns>,
) => db.insertInto('environment_deployment_rule').values(rule).execute();

export const updateEnvironmentRule = (db: Database, scope: Scope, id: string, change: EnvironmentRuleColumns) =>
  db
    .updateTable('environment_deployment_rule')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Sets when a rule is looked at next; `updated_at` stays, because no configuration has changed. */
export const setNextLook = (db: Database, scope: Scope, id: string, nextAt: Date | null) =>
  db
    .updateTable('environment_deployment_rule')
    .set({ next_at: nextAt })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/**
 * Environments whose hours have begun or ended, over all organizations. Those on a locked cluster wait until it is unlocked, those that are
 * being deleted for nothing.
 */
export const listDue = (db: Database, now: Date) =>
  db
    .selectFrom('environment_deployment_rule as rule')
    .innerJoin('environment', 'environment.id', 'rule.environment_id')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .select(['rule.environment_id', 'rule.organization_id'])
    .where('rule.next_at', '<=', now)
    .where('environment.deleting', '=', false)
    .where('cluster.locked_at', 'is', null)
    .orderBy('rule.next_at')
    .execute();

/** State of a service once everything that was requested of it has been done. */
const EXPECTED = sql<string>`coalesce((select case when d.action in ('DEPLOY', 'RESTART') then 'running' when d.action = 'STOP' then 'stopped' else 'absent' end
  from deployment_service ds join deployment d on d.id = ds.deployment_id
  where ds.organization_id = service.organization_id and ds.service_id = service.id and d.status <> 'ENDED' and d.action <> 'RUN'
  order by d.number desc limit 1), service.wanted)`;

/**
 * Lists services to start or stop: their state is, or will be, `expected`, and no person has requested anything for them `since` the hours
 * changed. A deployment by a person at night stays until the morning. Services that are left out of the environment's deployments are not
 * started.
 */
export const listServicesToSwitch = async (
  db: Database,
  scope: Scope,
  environmentId: string,
  expected: 'running' | 'stopped',
  since: Date,
): Promise<string[]> => {
  const rows = await db
    .selectFrom('service')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('environment_id', '=', environmentId)
    .where('deleting', '=', false)
    .where(sql<boolean>`(${expected} = 'running' or not service.is_skipped)`)
    .where(sql<boolean>`${EXPECTED} = ${expected}`)
    .where(
      sql<boolean>`not exists (select 1 from deployment_service ds join deployment d on d.id = ds.deployment_id
        where ds.organization_id = service.organization_id and ds.service_id = service.id and not d.automatic and d.created_at >= ${since})`,
    )
    .execute();
  return rows.map((row) => row.id);
};
