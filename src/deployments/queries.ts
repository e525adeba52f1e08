import { storable } from '#kernel/storable.ts';
import type { ServiceError } from '#deployments/model/errors.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import type { Snapshot } from '#deployments/model/snapshot.ts';
import { movesOf, type DeploymentAction, type State, type Trigger } from '#deployments/model/states.ts';

export type DeploymentRow = NonNullable<Awaited<ReturnType<typeof findDeployment>>>;

export const findDeployment = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('deployment')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirst();

/** Selects the place of a request that the program makes itself. It makes none on a locked cluster, or looks at the lock itself. */
export const selectPlace = (db: Database, scope: Scope, environmentId: string) =>
  db
    .selectFrom('environment')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .select([
      'environment.organization_id as organizationId',
      'project.id as projectId',
      'project.name as projectName',
      'environment.id as environmentId',
      'environment.name as environmentName',
      'environment.cluster_id as clusterId',
      sql.lit(false).as('clusterLocked'),
    ])
    .where('environment.organization_id', '=', scope.organizationId)
    .where('environment.id', '=', environmentId);

/** Names that events carry. */
export const findNames = (db: Database, scope: Scope, environmentId: string) =>
  db
    .selectFrom('environment')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .innerJoin('organization', 'organization.id', 'environment.organization_id')
    .select([
      'organization.name as organization',
      'project.name as project',
      'environment.name as environment',
      'environment.mode',
    ])
    .where('environment.organization_id', '=', scope.organizationId)
    .where('environment.id', '=', environmentId)
    .executeTakeFirstOrThrow();

/** Deployments of an environment that have not ended, in order. */
export const listActiveDeployments = (db: Database, scope: Scope, environmentId: string) =>
  db
    .selectFrom('deployment')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('environment_id', '=', environmentId)
    .where('status', '<>', 'ENDED')
    .orderBy('number')
    .execute();

/** Locks the last waiting deployment of an environment if a push requested it: no worker claims it until the commit. */
export async function lockWaitingPush(db: Database, scope: Scope, environmentId: string) {
  const last = await db
    .selectFrom('deployment')
    .select(['id', 'origin', 'automatic', 'trigger', 'cancel_requested_at', 'whole_environment', 'snapshot'])
    .where('organization_id', '=', scope.organizationId)
    .where('environment_id', '=', environmentId)
    .where('status', '=', 'WAITING')
    // Plans of the same push wait behind its deployment.
    .where(sql<boolean>`not (origin = 'GIT' and automatic and trigger = 'RUN')`)
    .orderBy('number', 'desc')
    .limit(1)
    .forUpdate()
    .executeTakeFirst();
  const isPush = last?.origin === 'GIT' && last.automatic && last.trigger === 'DEPLOY' && !last.whole_environment;
  return isPush && last.cancel_requested_at === null ? { id: last.id, snapshot: last.snapshot as Snapshot } : undefined;
}

export const listServicesOf = (db: Database, scope: Scope, deploymentIds: string[]) =>
  db
    .selectFrom('deployment_service')
    .select(['deployment_id', 'service_id', 'state', 'action', 'name', 'kind'])
    .where('organization_id', '=', scope.organizationId)
    .where('deployment_id', '=', sql<string>`any(${deploymentIds})`)
    .execute();

/** Takes the next number of an environment under its row's lock: the order of numbers is the order of commits. */
export const takeNumber = async (db: Database, scope: Scope, environmentId: string): Promise<number> => {
  const row = await db
    .updateTable('environment')
    .set({ deployment_number: sql`deployment_number + 1` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', environmentId)
    .returning('deployment_number')
    .executeTakeFirstOrThrow();
  return row.deployment_number;
};

export interface NewDeployment {
  id: string;
  organization_id: string;
  environment_id: string;
  cluster_id: string;
  number: number;
  action: DeploymentAction;
  trigger: string;
  whole_environment: boolean;
  snapshot: { format: number };
  resolution: unknown;
  requested_by: string | null;
  requested_by_name: string;
  origin: string;
  automatic: boolean;
  /** Kinds of its services. */
  kinds: string[];
}

/** Machine of the deployment's cluster. */
const NODE = sql<string | null>`(select node_id from cluster where cluster.id = deployment.cluster_id)`.as('node_id');

export const insertDeployment = (db: Database, { snapshot, resolution, ...deployment }: NewDeployment) =>
  db
    .insertInto('deployment')
    .values({
      ...deployment,
      format: snapshot.format,
      snapshot: json(snapshot),
      resolution: resolution === null ? null : json(resolution),
    })
    .returning(NODE)
    .executeTakeFirstOrThrow();

export interface NewDeploymentService {
  deployment_id: string;
  organization_id: string;
  environment_id: string;
  number: number;
  service_id: string;
  kind: string;
  name: string;
  icon_uri: string;
  stage_id: string;
  stage_name: string;
  stage_position: number;
  action: DeploymentAction;
  sub_action: string;
  details: string;
  state: State;
}

export const insertDeploymentServices = (db: Database, services: NewDeploymentService[]) =>
  db.insertInto('deployment_service').values(services).execute();

/** Replaces the snapshot of a waiting deployment that a new request joins. */
export const joinDeployment = (
  db: Database,
  scope: Scope,
  id: string,
  change: {
    snapshot: { format: number };
    requested_by: string | null;
    requested_by_name: string;
    origin: string;
    automatic: boolean;
    kinds: string[];
  },
) =>
  db
    .updateTable('deployment')
    .set({ ...change, format: change.snapshot.format, snapshot: json(change.snapshot), updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .where('status', '=', 'WAITING')
    .returning(NODE)
    .executeTakeFirst();

/** Selection of the services that a trigger moves, and values that are stored with the move. */
export interface MoveOptions {
  /** Services to move; all of the deployment if absent. */
  serviceIds?: string[];
  error?: ServiceError;
  /** Commits that services were resolved to, by service id. */
  commits?: Record<string, unknown>;
}

/**
 * Moves services of a deployment by a trigger: the only writer of a state, a conditional update. Answers what has moved; a service that the
 * trigger means nothing for stays as it is. Not sent yet: the executor puts it into larger statements.
 */
export function moveServices(
  db: Database,
  scope: Scope,
  deploymentId: string,
  action: DeploymentAction,
  trigger: Trigger,
  options: MoveOptions = {},
) {
  const moves = movesOf(action, trigger);
  const to = sql<string>`case state ${sql.join(
    moves.map((move) => sql`when ${sql.lit(move.from)} then ${sql.lit(move.to)}`),
    sql` `,
  )} end`;
  const query = db
    .updateTable('deployment_service')
    .set({
      state: to,
      updated_at: sql`now()`,
      started_at: sql`coalesce(started_at, now())`,
      ...(FINAL_TRIGGERS.includes(trigger)
        ? { ended_at: sql`case when ${to} = 'CANCELING' then null else clock_timestamp() end` }
        : {}),
      ...(options.error === undefined
        ? {}
        : {
            error: storable(options.error.message),
            error_code: options.error.code,
            error_step: options.error.step,
            error_cause: options.error.cause && json(options.error.cause),
          }),
      ...(options.commits === undefined
        ? {}
        : { commit: sql`coalesce(${json(options.commits)}::jsonb -> service_id::text, commit)` }),
    })
    .where('organization_id', '=', scope.organizationId)
    .where('deployment_id', '=', deploymentId)
    .where('state', '=', sql<string>`any(${moves.map((move) => move.from)})`)
    .returning(['service_id', 'state', 'name', 'kind', 'error', 'error_code', 'error_step', 'error_cause']);
  return options.serviceIds ? query.where('service_id', '=', sql<string>`any(${options.serviceIds}::uuid[])`) : query;
}

/** Triggers that end a service in its deployment. */
const FINAL_TRIGGERS: readonly Trigger[] = ['succeed', 'fail', 'cancelled', 'cancel'];

/** Ends the open steps of a deployment whose worker was killed or cut off. */
export const endOpenSteps = (db: Database, scope: Scope, deploymentId: string, status: 'ERROR' | 'CANCEL') =>
  db
    .updateTable('deployment_step')
    .set({ status, ended_at: sql`clock_timestamp()` })
    .where('organization_id', '=', scope.organizationId)
    .where('deployment_id', '=', deploymentId)
    .where('status', '=', 'STARTED');

/** Locks the deployment that runs in the environment of a service, if there is one, until the commit. */
export const lockRunningOf = (db: Database, organizationIds: string[], serviceId: string) =>
  db
    .selectFrom('deployment')
    .innerJoin('service', 'service.environment_id', 'deployment.environment_id')
    .select('deployment.id')
    .where('service.organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('service.id', '=', serviceId)
    .where('deployment.status', 'in', ['RUNNING', 'RECAP'])
    .forUpdate('deployment')
    .execute();

/** Columns of an ended deployment. Its end is after its beginning, even if the transaction waited for the row in between. */
export const ENDED = {
  status: 'ENDED',
  ended_at: sql<Date>`clock_timestamp()`,
  updated_at: sql<Date>`now()`,
  claim_token: null,
  worker_id: null,
  lease_until: null,
} as const;

/** Ends a deployment that was cancelled without its worker taking part; `leftover` keeps the worker that may still be at it. */
export const endCancelled = (db: Database, scope: Scope, id: string, leftover: boolean) =>
  db
    .updateTable('deployment')
    .set({
      ...ENDED,
      outcome: 'CANCELED',
      ...(leftover ? { leftover_worker: sql`worker_id`, leftover_until: sql`lease_until` } : {}),
    })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .where('status', '<>', 'ENDED')
    .execute();

/** Marks services whose work was cut off: their next deployment skips nothing (docs/contributing/engine.md, *The queue*). */
export const markDirty = (db: Database, scope: Scope, serviceIds: string[]) =>
  db
    .updateTable('service')
    .set({ dirty: true })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${serviceIds})`)
    .execute();

export const requestCancel = (db: Database, scope: Scope, id: string, forced: boolean) =>
  db
    .updateTable('deployment')
    .set({
      cancel_requested_at: sql`coalesce(cancel_requested_at, now())`,
      cancel_forced: sql`cancel_forced or ${forced}`,
      updated_at: sql`now()`,
    })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/**
 * Revives the services, environment and project of a delete that was cancelled or failed: they are usable, and can be deleted again.
 * Anything that another delete still covers stays as it is.
 */
export async function revive(
  db: Database,
  scope: Scope,
  deployment: Pick<DeploymentRow, 'id' | 'environment_id' | 'whole_environment' | 'snapshot'>,
): Promise<void> {
  const ids = (deployment.snapshot as Snapshot).services.map((service) => service.serviceId);
  const other = sql`other.action = 'DELETE' and other.status <> 'ENDED' and other.id <> ${deployment.id}`;
  await db
    .updateTable('service')
    .set({ deleting: false })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${ids})`)
    .where(
      sql<boolean>`not exists (select 1 from deployment other join deployment_service ds on ds.deployment_id = other.id
        where ds.service_id = service.id and ${other})`,
    )
    .execute();
  if (!deployment.whole_environment) return;
  const environment = await db
    .updateTable('environment')
    .set({ deleting: false })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', deployment.environment_id)
    .where(
      sql<boolean>`not exists (select 1 from deployment other
        where other.environment_id = environment.id and other.whole_environment and ${other})`,
    )
    .returning('project_id')
    .executeTakeFirst();
  if (environment)
    await db
      .updateTable('project')
      .set({ deleting: false })
      .where('organization_id', '=', scope.organizationId)
      .where('id', '=', environment.project_id)
      .execute();
}
