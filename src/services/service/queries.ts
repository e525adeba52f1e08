import { accessVersionOf } from '#platform/access/remembered.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import { preparedRead } from '#platform/database/prepared.ts';
import { SERVICE_METADATA } from '#resources/metadata-group/index.ts';
import type { ServiceKind } from '#services/service/holder.ts';

/** Selects services with their project, environment, cluster and last release. */
export const selectServices = (db: Database) =>
  db
    .selectFrom('service')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .leftJoin('release', 'release.id', 'service.release_id')
    .leftJoin('git_token', 'git_token.id', 'service.git_token_id')
    .leftJoin('git_token as values_token', 'values_token.id', 'service.values_git_token_id')
    .leftJoin('helm_repository', 'helm_repository.id', 'service.helm_repository_id')
    .leftJoin('container_registry as registry', 'registry.id', 'service.container_registry_id')
    .selectAll('service')
    .select([
      'environment.name as environment_name',
      'environment.mode as environment_mode',
      'environment.cluster_id',
      'environment.project_id',
      'environment.deleting as environment_deleting',
      'project.name as project_name',
      'cluster.name as cluster_name',
      'cluster.runtime as cluster_runtime',
      'cluster.node_id as cluster_node_id',
      'cluster.locked_at as cluster_locked_at',
      'release.resolution as release_resolution',
      'release.created_at as released_at',
      'git_token.name as git_token_name',
      'values_token.name as values_git_token_name',
      'helm_repository.name as helm_repository_name',
      'helm_repository.url as helm_repository_url',
      'registry.name as registry_name',
      'registry.url as registry_url',
      'registry.kind as registry_kind',
    ])
    .select(SERVICE_METADATA.as('metadata'));

export type ServiceRow = Awaited<ReturnType<ReturnType<typeof selectServices>['execute']>>[number];

const selectById = preparedRead((db, organizationIds: string[], id: string, userId: string | null) =>
  selectServices(db)
    .select(accessVersionOf(userId).as('accessVersion'))
    .where('service.organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('service.id', '=', id),
);

export const findServiceById = async (
  db: Database,
  organizationIds: string[],
  id: string,
  userId: string | null = null,
) => (await selectById(db, organizationIds, id, userId))[0];

/** Locks the row against other writes until the commit. */
export const lockService = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('service')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

/** Condition: a newer commit than the deployed one is recorded. */
const outdated = sql<boolean>`coalesce(service.newest_commit <> release.resolution -> 'commit' ->> 'id', false)`;

/** Lists services of one kind in an environment, in creation order. `toUpdate` selects those with or without a newer commit. */
export const listServicesByEnvironment = (
  db: Database,
  scope: Scope,
  environmentId: string,
  kind: ServiceKind,
  toUpdate?: boolean,
) => {
  const query = selectServices(db)
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.environment_id', '=', environmentId)
    .where('service.kind', '=', kind)
    .orderBy('service.created_at')
    .orderBy('service.id');
  return toUpdate === undefined ? query : query.where(sql<boolean>`${outdated} = ${toUpdate}`);
};

/** Lists services of every kind in an environment, in creation order. */
export const listAllServicesByEnvironment = (db: Database, scope: Scope, environmentId: string) =>
  selectServices(db)
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.environment_id', '=', environmentId)
    .orderBy('service.created_at')
    .orderBy('service.id');

export interface NewService {
  id: string;
  organization_id: string;
  environment_id: string;
  stage_id: string;
  kind: ServiceKind;
  name: string;
  description: string | null;
  icon_uri: string;
  spec: unknown;
  requires: string[];
  details: unknown;
  last_updated_by: string | null;
  last_updated_with: string | null;
}

/** Columns that an edit writes. */
export type ServiceChange = Omit<NewService, 'id' | 'organization_id' | 'environment_id' | 'stage_id' | 'kind'>;

export const insertService = (db: Database, { spec, details, ...service }: NewService) =>
  db
    .insertInto('service')
    .values({ ...service, spec: json(spec), details: json(details) })
    .execute();

/** Writes the configuration and increments its version, so that the service shows OUT_OF_DATE. */
export const updateService = (db: Database, scope: Scope, id: string, { spec, details, ...change }: ServiceChange) =>
  db
    .updateTable('service')
    .set({ ...change, spec: json(spec), details: json(details), version: sql`version + 1`, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Increments the version of a service without another change of its row: an input of its deployment has changed. */
export const touchService = (db: Database, scope: Scope, id: string) =>
  db
    .updateTable('service')
    .set({ version: sql`version + 1`, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Finds the stage of an environment with a default name, else its last stage. */
export const findDefaultStage = (db: Database, scope: Scope, environmentId: string, name: string) =>
  db
    .selectFrom('deployment_stage')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('environment_id', '=', environmentId)
    .orderBy(sql`name = ${name}`, 'desc')
    .orderBy('position', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow();
