import { accessVersionOf } from '#platform/access/remembered.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { preparedRead } from '#platform/database/prepared.ts';

const selectEnvironments = (db: Database) =>
  db
    .selectFrom('environment')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .selectAll('environment')
    .select([
      'cluster.name as cluster_name',
      'cluster.cloud_provider',
      'cluster.runtime',
      'cluster.locked_at as cluster_locked_at',
      'project.name as project_name',
    ]);

export type EnvironmentRow = Awaited<ReturnType<ReturnType<typeof selectEnvironments>['execute']>>[number];

/** Environments of a project in creation order. */
export const listEnvironmentsByProject = (db: Database, scope: Scope, projectId: string) =>
  selectEnvironments(db)
    .where('environment.organization_id', '=', scope.organizationId)
    .where('environment.project_id', '=', projectId)
    .orderBy('environment.created_at')
    .orderBy('environment.id');

const selectById = preparedRead((db, organizationIds: string[], id: string, userId: string | null) =>
  selectEnvironments(db)
    .select(accessVersionOf(userId).as('accessVersion'))
    .where('environment.organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('environment.id', '=', id),
);

export const findEnvironmentById = async (
  db: Database,
  organizationIds: string[],
  id: string,
  userId: string | null = null,
) => (await selectById(db, organizationIds, id, userId))[0];

/** Locks the row against other writes until the commit. Deployment numbers are given under this lock. */
export const lockEnvironment = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('environment')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

export interface NewEnvironment {
  id: string;
  organization_id: string;
  project_id: string;
  cluster_id: string;
  name: string;
  mode: string;
  last_updated_by: string | null;
}

export const insertEnvironment = (db: Database, environment: NewEnvironment) =>
  db.insertInto('environment').values(environment).execute();

export const updateEnvironment = (
  db: Database,
  scope: Scope,
  id: string,
  change: { name: string; mode: string; last_updated_by: string | null },
) =>
  db
    .updateTable('environment')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Number of services of each environment of a project. */
export const countServicesByProject = (db: Database, scope: Scope, projectId: string) =>
  db
    .selectFrom('environment')
    .leftJoin('service', 'service.environment_id', 'environment.id')
    .select(['environment.id', sql<number>`count(service.id)`.as('services')])
    .where('environment.organization_id', '=', scope.organizationId)
    .where('environment.project_id', '=', projectId)
    .groupBy('environment.id')
    .orderBy('environment.created_at');

/** Finds the cluster for an environment that names none: the default one, else the only one. */
export const findImpliedCluster = async (db: Database, scope: Scope) => {
  const rows = await db
    .selectFrom('cluster')
    .select(['id', 'is_default'])
    .where('organization_id', '=', scope.organizationId)
    .orderBy('is_default', 'desc')
    .limit(2)
    .execute();
  return rows[0]?.is_default || rows.length === 1 ? rows[0]!.id : undefined;
};

export const findClusterId = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('cluster')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirst();

/** The stages that every environment begins with (docs/contributing/engine.md, *Snapshot, resolution, plan*). */
export const insertStages = (
  db: Database,
  stages: {
    id: string;
    organization_id: string;
    environment_id: string;
    name: string;
    description: string;
    position: number;
  }[],
) => db.insertInto('deployment_stage').values(stages).execute();

/** Raises the version of an environment without an edit of its row: something that its services are deployed with has changed. */
export const touchEnvironment = (db: Database, scope: Scope, id: string) =>
  db
    .updateTable('environment')
    .set({ version: sql`version + 1`, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Lists environments whose time is over (`expires_at`). */
export const listExpired = (db: Database) =>
  db
    .selectFrom('environment')
    .select(['id', 'organization_id'])
    .where('expires_at', '<=', sql<Date>`now()`)
    .where('deleting', '=', false)
    .execute();
