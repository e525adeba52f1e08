import type { RawBuilder } from 'kysely';
import { accessVersionOf } from '#platform/access/remembered.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { preparedRead } from '#platform/database/prepared.ts';

const environmentsOf = sql<number>`(select count(*) from environment where environment.project_id = project.id and environment.organization_id = project.organization_id)`;

const selectProjects = (db: Database) => db.selectFrom('project').selectAll().select(environmentsOf.as('environments'));

export type ProjectRow = Awaited<ReturnType<ReturnType<typeof selectProjects>['execute']>>[number];

/** Projects of an organization in creation order. */
export const listProjects = (db: Database, scope: Scope) =>
  selectProjects(db).where('organization_id', '=', scope.organizationId).orderBy('created_at').orderBy('id');

const selectById = preparedRead((db, organizationIds: string[], id: string, userId: string | null) =>
  selectProjects(db)
    .select(accessVersionOf(userId).as('accessVersion'))
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id),
);

export const findProjectById = async (
  db: Database,
  organizationIds: string[],
  id: string,
  userId: string | null = null,
) => (await selectById(db, organizationIds, id, userId))[0];

/** Locks the row against other writes until the commit. */
export const lockProject = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('project')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

export const insertProject = (
  db: Database,
  project: { id: string; organization_id: string; name: string; description: string | null },
) => db.insertInto('project').values(project).execute();

export const updateProject = (
  db: Database,
  scope: Scope,
  id: string,
  change: { name: string; description?: string | null },
) =>
  db
    .updateTable('project')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const markProjectDeleting = (db: Database, scope: Scope, id: string) =>
  db
    .updateTable('project')
    .set({ deleting: true, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteProjectRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('project').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

/** Counts the environments and services of each project; `visible` is the condition on the environments that count. */
export const listProjectStats = (db: Database, scope: Scope, visible: RawBuilder<boolean>) =>
  db
    .selectFrom('project')
    .leftJoin('environment', (join) => join.onRef('environment.project_id', '=', 'project.id').on(visible))
    .leftJoin('service', 'service.environment_id', 'environment.id')
    .select([
      'project.id',
      sql<number>`count(distinct environment.id)`.as('environments'),
      sql<number>`count(service.id)`.as('services'),
    ])
    .where('project.organization_id', '=', scope.organizationId)
    .groupBy('project.id')
    .orderBy('project.created_at');

/** Raises the version of a project without an edit of its row: something that its services are deployed with has changed. */
export const touchProject = (db: Database, scope: Scope, id: string) =>
  db
    .updateTable('project')
    .set({ version: sql`version + 1`, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();
