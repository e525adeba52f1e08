import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { selectServices } from '#services/service/queries.ts';

/** Applications that are linked with a database, in the order of the links. */
export const listLinkedApplications = (db: Database, scope: Scope, databaseId: string) =>
  selectServices(db)
    .innerJoin('database_link', 'database_link.application_id', 'service.id')
    .where('service.organization_id', '=', scope.organizationId)
    .where('database_link.database_id', '=', databaseId)
    .orderBy('database_link.created_at')
    .orderBy('service.id');

export const insertLink = (
  db: Database,
  link: { organization_id: string; database_id: string; application_id: string; variable_id: string },
) => db.insertInto('database_link').values(link).execute();

/** Deletes a link and returns its alias; undefined if there is no such link. */
export const deleteLink = (db: Database, scope: Scope, databaseId: string, applicationId: string) =>
  db
    .deleteFrom('database_link')
    .where('organization_id', '=', scope.organizationId)
    .where('database_id', '=', databaseId)
    .where('application_id', '=', applicationId)
    .returning(sql<string | null>`variable_id`.as('variable_id'))
    .executeTakeFirst();
