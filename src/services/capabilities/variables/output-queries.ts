import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { preparedRead } from '#platform/database/prepared.ts';

/** Lists and locks the environment's variables with the key of an output, and the service's present outputs. */
export const listInTheWay = (
  db: Database,
  scope: Scope,
  at: { environmentId: string; serviceId: string; keys: string[] },
) =>
  db
    .selectFrom('variable')
    .select(['id', 'key', 'is_secret', 'value', 'value_version', 'output_of', 'secret_manager_access_id'])
    .where('organization_id', '=', scope.organizationId)
    .where('environment_id', '=', at.environmentId)
    .where(({ or, eb }) =>
      or([eb('key', '=', sql<string>`any(${at.keys}::text[])`), eb('output_of', '=', at.serviceId)]),
    )
    .orderBy('id')
    .forUpdate()
    .execute();

export type RowInTheWay = Awaited<ReturnType<typeof listInTheWay>>[number];

export interface NewOutput {
  id: string;
  organization_id: string;
  key: string;
  is_secret: boolean;
  value: string | null;
  scope: 'ENVIRONMENT';
  environment_id: string;
  mount_path: string | null;
  description: string | null;
  owned_by: string;
  output_of: string;
  output_deployment: string;
}

export const insertOutput = (db: Database, output: NewOutput) => db.insertInto('variable').values(output).execute();

/** Updates a variable with a later output. The variable may come from an earlier execution, even of another service. */
export const updateOutput = (
  db: Database,
  scope: Scope,
  id: string,
  change: Pick<NewOutput, 'value' | 'mount_path' | 'description' | 'output_of' | 'output_deployment'> & {
    value_version: number;
  },
) =>
  db
    .updateTable('variable')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteOutputs = (db: Database, scope: Scope, ids: string[]) =>
  db
    .deleteFrom('variable')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .execute();

/** Lists the outputs of an environment's services; with a deployment only the outputs of that deployment. Every deployment asks for them. */
export const listOutputs = (db: Database, scope: Scope, environmentId: string, deploymentId: string | null) =>
  selectOutputs(db, scope.organizationId, environmentId, deploymentId);

const selectOutputs = preparedRead((db, organizationId: string, environmentId: string, deploymentId: string | null) =>
  db
    .selectFrom('variable')
    .leftJoin('service', 'service.id', 'variable.service_id')
    .selectAll('variable')
    .select(['service.name as service_name', 'service.kind as service_kind'])
    .where('variable.organization_id', '=', organizationId)
    .where('variable.environment_id', '=', environmentId)
    .where('variable.output_of', 'is not', null)
    .where(sql<boolean>`(${deploymentId}::uuid is null or variable.output_deployment = ${deploymentId}::uuid)`),
);
