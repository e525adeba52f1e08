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

/** Tells whether an environment runs the code of a fork. An environment that is gone does. */
export async function isOfFork(db: Database, scope: Scope, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('environment')
    .select('fork_ref')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirst();
  return row === undefined || row.fork_ref !== null;
}

/** Head of a pull request from another repository: the ref that the repository of the base has it by, and the commit that was approved. */
export interface ForkHead {
  fork_ref: string;
  fork_commit: string;
}

/** Records which commit of a fork an environment may run. */
export const setForkCommit = (db: Database, scope: Scope, id: string, commit: string) =>
  db
    .updateTable('environment')
    .set({ fork_commit: commit })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .where('fork_ref', 'is not', null)
    .execute();

export interface NewEnvironment extends Partial<ForkHead> {
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

/** Environment whose time is over. */
export interface ExpiredEnvironment {
  id: string;
  organization_id: string;
}

/** Lists environments whose time is over (`expires_at`), those of the organizations in turns. Those on a locked cluster wait until it is unlocked. */
export async function listExpired(db: Database, limit: number): Promise<ExpiredEnvironment[]> {
  const { rows } = await sql<ExpiredEnvironment>`
    select e.id, e.organization_id from environment e join cluster c on c.id = e.cluster_id
    where e.expires_at <= now() and not e.deleting and c.locked_at is null
    order by row_number() over (partition by e.organization_id order by e.expires_at, e.id), e.expires_at limit ${limit}`.execute(
    db,
  );
  return rows;
}

/** Tells whether the time of an environment is over, also after it was put off. */
export async function isExpired(db: Database, scope: Scope, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('environment')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .where('expires_at', '<=', sql<Date>`now()`)
    .where('deleting', '=', false)
    .executeTakeFirst();
  return row !== undefined;
}

/** Sets the time of an environment in seconds from now; 0 means no end. */
export const setExpiry = (db: Database, scope: Scope, id: string, seconds: number) =>
  db
    .updateTable('environment')
    .set({ expires_at: seconds === 0 ? null : sql<Date>`now() + make_interval(secs => ${seconds})` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();
