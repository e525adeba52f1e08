import { sql, type Database, type Scope } from '#platform/database/index.ts';

export type StageRow = NonNullable<Awaited<ReturnType<typeof findStageById>>>;

export const findStageById = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('deployment_stage as stage')
    .innerJoin('environment', 'environment.id', 'stage.environment_id')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .selectAll('stage')
    .select([
      'environment.project_id',
      'environment.mode',
      'environment.name as environment_name',
      'environment.deleting',
      'project.name as project_name',
    ])
    .where('stage.organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('stage.id', '=', id)
    .executeTakeFirst();

/** Stages of an environment in their order. */
export const listStages = (db: Database, scope: Scope, environmentId: string) =>
  db
    .selectFrom('deployment_stage')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('environment_id', '=', environmentId)
    .orderBy('position')
    .execute();

export const listStageServices = (db: Database, scope: Scope, environmentId: string) =>
  db
    .selectFrom('service')
    .select(['id', 'stage_id', 'kind', 'is_skipped', 'created_at', 'updated_at'])
    .where('organization_id', '=', scope.organizationId)
    .where('environment_id', '=', environmentId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();

/** Locks the environment, whose stages are ordered together. */
export const lockEnvironment = (db: Database, organizationIds: string[], environmentId: string) =>
  db
    .selectFrom('environment')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', environmentId)
    .forUpdate()
    .execute();

export const insertStage = (
  db: Database,
  stage: {
    id: string;
    organization_id: string;
    environment_id: string;
    name: string;
    description: string;
    position: number;
  },
) => db.insertInto('deployment_stage').values(stage).execute();

export const updateStage = (db: Database, scope: Scope, id: string, change: { name: string; description: string }) =>
  db
    .updateTable('deployment_stage')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Puts the stages into the given order. */
export const orderStages = (db: Database, scope: Scope, ids: string[]) =>
  sql`update deployment_stage set position = place.position - 1 from unnest(${ids}::uuid[]) with ordinality as place (id, position)
    where deployment_stage.organization_id = ${scope.organizationId} and deployment_stage.id = place.id`.execute(db);

export const deleteStage = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('deployment_stage').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

export const attachService = (
  db: Database,
  scope: Scope,
  environmentId: string,
  serviceId: string,
  change: { stage_id: string; is_skipped?: boolean },
) =>
  db
    .updateTable('service')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('environment_id', '=', environmentId)
    .where('id', '=', serviceId)
    .executeTakeFirst();

export const findStageOfService = (db: Database, scope: Scope, serviceId: string) =>
  db
    .selectFrom('service')
    .innerJoin('deployment_stage as stage', 'stage.id', 'service.stage_id')
    .selectAll('stage')
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.id', '=', serviceId)
    .executeTakeFirstOrThrow();
