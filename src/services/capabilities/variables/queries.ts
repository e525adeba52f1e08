import { inOrder, sql, type Database, type Scope } from '#platform/database/index.ts';
import type { PortSpec } from '#services/ports/ports.ts';

/** Connection data of a database, as its spec stores it under `access`. */
export interface StoredDatabaseAccess {
  port: number;
  /** Port for connections from outside, null while the database is not publicly accessible. */
  external_port: number | null;
  login: string;
  /** Sealed for `databasePasswordPlace(id)`, base64. */
  password: string;
  name: string;
  /** Query part of the database's URL. */
  url_query?: string;
}

/** Ids of a holder and of its ancestors. */
export interface Lineage {
  projectId: string;
  environmentId?: string;
  serviceIds: string[];
}

/** Selects the ids of a variable and its sources: the overridden or aliased variable, and so on upwards. */
const chainOf = (id: string) => sql<string>`(
  with recursive chain (id, source_id) as (
    select id, coalesce(overridden_id, aliased_id) from variable where id = ${id}
    union select v.id, coalesce(v.overridden_id, v.aliased_id) from variable v join chain on v.id = chain.source_id
  ) select id from chain)`;

export type VariableRow = Awaited<ReturnType<typeof listVisible>>[number];

/**
 * Lists the variables and secrets of a project, an environment and services, in creation order. With `of` only the one with that id and its
 * sources.
 */
export const listVisible = (
  db: Database,
  scope: Scope,
  { projectId, environmentId, serviceIds }: Lineage,
  of?: string,
) =>
  db
    .selectFrom('variable')
    .leftJoin('service', 'service.id', 'variable.service_id')
    .selectAll('variable')
    .select(['service.name as service_name', 'service.kind as service_kind'])
    .where('variable.organization_id', '=', scope.organizationId)
    .where((where) =>
      where.or([
        where('variable.project_id', '=', projectId),
        ...(environmentId ? [where('variable.environment_id', '=', environmentId)] : []),
        ...(serviceIds.length ? [where('variable.service_id', '=', sql<string>`any(${serviceIds}::uuid[])`)] : []),
      ]),
    )
    .$if(of !== undefined, (query) => query.where('variable.id', 'in', chainOf(of!)))
    .orderBy('variable.created_at')
    .orderBy('variable.id')
    .execute();

const builtInColumns = [
  'project.id as project_id',
  'project.name as project_name',
  'project.created_at as project_created_at',
] as const;

/** Finds the columns of a project that its built-in variables need. */
export const findProjectOfBuiltIns = (db: Database, scope: Scope, projectId: string) =>
  db
    .selectFrom('project')
    .select(builtInColumns)
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', projectId)
    .executeTakeFirst();

export type BuiltInRow = Awaited<ReturnType<typeof listEnvironmentOfBuiltIns>>[number];

/** Lists the columns that built-in variables of an environment need. One row for each service, or one row without a service. */
export const listEnvironmentOfBuiltIns = (db: Database, scope: Scope, environmentId: string) =>
  db
    .selectFrom('environment')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .leftJoin('service', 'service.environment_id', 'environment.id')
    .select(builtInColumns)
    .select([
      'environment.id as environment_id',
      'environment.name as environment_name',
      'environment.created_at as environment_created_at',
      'service.id as service_id',
      'service.name as service_name',
      'service.kind as service_kind',
      'service.created_at as service_created_at',
      sql<PortSpec[] | null>`service.spec -> 'ports'`.as('ports'),
      sql<StoredDatabaseAccess | null>`service.spec -> 'access'`.as('access'),
      sql<string | null>`service.spec ->> 'type'`.as('type'),
    ])
    .where('environment.organization_id', '=', scope.organizationId)
    .where('environment.id', '=', environmentId)
    .orderBy('service.created_at')
    .orderBy('service.id')
    .execute();

export interface NewVariable {
  id: string;
  organization_id: string;
  key: string;
  is_secret: boolean;
  value: string | null;
  scope: string;
  project_id?: string;
  environment_id?: string;
  service_id?: string;
  mount_path: string | null;
  description: string | null;
  enable_interpolation_in_file: boolean;
  overridden_id?: string;
  aliased_id?: string;
  overridden_built_in?: string;
  aliased_built_in?: string;
  built_in_service_id?: string | null;
  secret_manager_access_id?: string | null;
  access_chosen_by?: string | null;
  access_chosen_with?: string | null;
  owned_by: string;
  /** Service whose executions write it. */
  output_of?: string | null;
}

export const insertVariables = (db: Database, variables: NewVariable[]) =>
  db
    .insertInto('variable')
    .values(variables.map((variable, index) => ({ ...variable, created_at: inOrder(index) })))
    .execute();

export interface VariableChange {
  /** Absent if the key stays: the key of an override may be changing with its source's. */
  key?: string;
  value: string | null;
  value_version: number;
  mount_path: string | null;
  description: string | null;
  enable_interpolation_in_file: boolean;
  secret_manager_access_id: string | null;
  access_chosen_by: string | null;
  access_chosen_with: string | null;
}

export const updateVariable = (db: Database, scope: Scope, id: string, change: VariableChange) =>
  db
    .updateTable('variable')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Locks a variable's key until the commit. */
export const lockKey = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('variable')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .forShare()
    .execute();

export const deleteVariable = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('variable').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

export const renameVariables = (db: Database, scope: Scope, ids: string[], key: string) =>
  db
    .updateTable('variable')
    .set({ key, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .execute();

/**
 * Lists the direct and indirect overrides and aliases of a variable, with their holders. They are deleted with the variable
 * (docs/contributing/rules.md 30). `overrides_only` marks those that have the variable's key.
 */
export const listDependents = (db: Database, scope: Scope, id: string) =>
  db
    .withRecursive('dependent(id, overrides_only)', (query) =>
      query
        .selectFrom('variable')
        .select(['variable.id', sql<boolean>`variable.overridden_id is not null`.as('overrides_only')])
        .where((where) => where.or([where('overridden_id', '=', id), where('aliased_id', '=', id)]))
        .unionAll(
          query
            .selectFrom('variable')
            .innerJoin('dependent', (join) =>
              join.on((on) =>
                on.or([
                  on('variable.overridden_id', '=', on.ref('dependent.id')),
                  on('variable.aliased_id', '=', on.ref('dependent.id')),
                ]),
              ),
            )
            .select([
              'variable.id',
              sql<boolean>`dependent.overrides_only and variable.overridden_id is not null`.as('overrides_only'),
            ]),
        ),
    )
    .selectFrom('dependent')
    .innerJoin('variable', 'variable.id', 'dependent.id')
    .leftJoin('service', 'service.id', 'variable.service_id')
    .leftJoin('environment', (join) =>
      join.on(sql<boolean>`environment.id = coalesce(variable.environment_id, service.environment_id)`),
    )
    .innerJoin('project', (join) =>
      join.on(sql<boolean>`project.id = coalesce(variable.project_id, environment.project_id)`),
    )
    .select([
      'variable.id',
      'variable.key',
      'variable.is_secret',
      'variable.scope',
      'dependent.overrides_only',
      'service.id as service_id',
      'service.name as service_name',
      'environment.id as environment_id',
      'environment.name as environment_name',
      'project.id as project_id',
      'project.name as project_name',
    ])
    .where('variable.organization_id', '=', scope.organizationId)
    .execute();

/** Finds the holder of a stored variable. */
export const findHolderOfVariable = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('variable')
    .select(['scope', 'project_id', 'environment_id', 'service_id'])
    .where('organization_id', '=', sql<string>`any(${organizationIds}::uuid[])`)
    .where('id', '=', id)
    .executeTakeFirst();

/** Lists which of the ids belong to a project, an environment or a service. */
export const listOwners = (db: Database, organizationIds: string[], ids: string[]) => {
  const mine = sql<string>`any(${organizationIds}::uuid[])`;
  const wanted = sql<string>`any(${ids}::uuid[])`;
  const kind = (value: string | null) => sql<string | null>`${value}::text`.as('kind');
  return db
    .selectFrom('project')
    .select(['id', sql<'project' | 'environment' | 'service'>`'project'`.as('type'), kind(null)])
    .where('organization_id', '=', mine)
    .where('id', '=', wanted)
    .unionAll(
      db
        .selectFrom('environment')
        .select(['id', sql<'environment'>`'environment'`.as('type'), kind(null)])
        .where('organization_id', '=', mine)
        .where('id', '=', wanted),
    )
    .unionAll(
      db
        .selectFrom('service')
        .select(['id', sql<'service'>`'service'`.as('type'), 'kind'])
        .where('organization_id', '=', mine)
        .where('id', '=', wanted),
    )
    .execute();
};

/** Finds the secret manager access of the organization with this id. */
export const findSecretManagerAccess = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('secret_manager_access')
    .select(['id', 'name', 'cluster_id'])
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirst();

/** Row of `updateVariables`. */
export type ManyVariables = Pick<
  VariableChange,
  'value' | 'value_version' | 'access_chosen_by' | 'access_chosen_with'
> & {
  id: string;
};

/** Updates the values of many variables in one statement. */
export const updateVariables = (db: Database, scope: Scope, changes: ManyVariables[]) =>
  db
    .updateTable('variable')
    .from(
      sql<ManyVariables>`unnest(
        ${changes.map((one) => one.id)}::uuid[],
        ${changes.map((one) => one.value)}::text[],
        ${changes.map((one) => one.value_version)}::int[],
        ${changes.map((one) => one.access_chosen_by)}::uuid[],
        ${changes.map((one) => one.access_chosen_with)}::uuid[])`.as<'change'>(
        sql`change (id, value, value_version, access_chosen_by, access_chosen_with)`,
      ),
    )
    .set((set) => ({
      value: set.ref('change.value'),
      value_version: set.ref('change.value_version'),
      access_chosen_by: set.ref('change.access_chosen_by'),
      access_chosen_with: set.ref('change.access_chosen_with'),
      updated_at: sql`now()`,
    }))
    .where('variable.organization_id', '=', scope.organizationId)
    .whereRef('variable.id', '=', 'change.id')
    .execute();
