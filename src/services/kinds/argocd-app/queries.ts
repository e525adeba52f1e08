import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { selectServices } from '#services/service/queries.ts';

/** The services that were read from an Argo CD, of all its destinations or of one, in creation order. */
export const listApps = (db: Database, scope: Scope, argoCdId: string, destination?: string) =>
  selectServices(db)
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.argo_cd_id', '=', argoCdId)
    .$if(destination !== undefined, (query) =>
      query.where(sql<boolean>`service.spec ->> 'destination' = ${destination}`),
    )
    .orderBy('service.created_at')
    .orderBy('service.id')
    .execute();

export const deleteApps = (db: Database, scope: Scope, ids: string[]) =>
  db
    .deleteFrom('service')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${ids})`)
    .where('argo_cd_id', 'is not', null)
    .execute();
