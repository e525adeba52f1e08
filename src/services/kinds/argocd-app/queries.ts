import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import { lockSubject } from '#platform/database/locks.ts';
import type { Observed } from '#deployments/index.ts';
import type { ArgoCdAppSpec } from '#services/kinds/argocd-app/spec.ts';
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

export interface NewApp {
  id: string;
  organization_id: string;
  environment_id: string;
  stage_id: string;
  argo_cd_id: string;
  name: string;
  icon_uri: string;
  spec: ArgoCdAppSpec;
  observed: Observed;
}

export const insertApp = (db: Database, { spec, observed, ...app }: NewApp) =>
  db
    .insertInto('service')
    .values({ ...app, kind: 'ARGOCD_APP', description: null, spec: json(spec), observed: json(observed) })
    .execute();

/** Updates an app. Only another configuration counts as a change of the service (`updated_at`); another state does not. */
export const updateApp = (
  db: Database,
  scope: Scope,
  id: string,
  change: { observed: Observed } & Partial<Pick<NewApp, 'environment_id' | 'stage_id' | 'name' | 'spec'>>,
) => {
  const { spec, observed, ...rest } = change;
  return db
    .updateTable('service')
    .set({
      ...rest,
      observed: json(observed),
      ...(spec ? { spec: json(spec), updated_at: sql`now()` } : {}),
    })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();
};

/** Finds an environment on a cluster by the first 8 digits of its id. Locks the row, so that its deletion cannot begin meanwhile. */
export const holdEnvironmentByDigits = (db: Database, scope: Scope, clusterId: string, digits: string) =>
  db
    .selectFrom('environment')
    .select(['id', 'name', 'project_id'])
    .where('organization_id', '=', scope.organizationId)
    .where('cluster_id', '=', clusterId)
    .where('deleting', '=', false)
    .where(sql<boolean>`left(id::text, 8) = ${digits}`)
    .orderBy('created_at')
    .limit(1)
    .forShare()
    .executeTakeFirst();

/** Locks the project of apps, until the commit, so that only one process creates it or an environment in it. */
export const holdProjectOfApps = (db: Database, organizationId: string) =>
  lockSubject(db, 'argo cd project of organization', organizationId);

export const findProjectByName = (db: Database, scope: Scope, name: string) =>
  db
    .selectFrom('project')
    .select(['id', 'name', 'deleting'])
    .where('organization_id', '=', scope.organizationId)
    .where(sql<boolean>`lower(name) = ${name}`)
    .executeTakeFirst();

/** Lists the environments of a project and locks them against deletion. */
export const holdEnvironments = (db: Database, scope: Scope, projectId: string) =>
  db
    .selectFrom('environment')
    .select(['id', 'name', 'project_id', 'cluster_id', 'deleting'])
    .where('organization_id', '=', scope.organizationId)
    .where('project_id', '=', projectId)
    .orderBy('created_at')
    .orderBy('id')
    .forShare()
    .execute();

export const findCluster = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('cluster')
    .select(['id', 'name', 'production'])
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirstOrThrow();

/** Lists the names of the services of environments, with the ids of the services. */
export const listNames = (db: Database, scope: Scope, environmentIds: string[]) =>
  db
    .selectFrom('service')
    .select(['id', 'environment_id', 'name'])
    .where('organization_id', '=', scope.organizationId)
    .where('environment_id', '=', sql<string>`any(${environmentIds})`)
    .execute();
