import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import { movesOf, type DeploymentAction, type State, type Trigger } from '#deployments/model/states.ts';

export type DeploymentRow = NonNullable<Awaited<ReturnType<typeof findDeployment>>>;

export const findDeployment = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('deployment')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirst();

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

export const listServicesOf = (db: Database, scope: Scope, deploymentIds: string[]) =>
  db
    .selectFrom('deployment_service')
    .select(['deployment_id', 'service_id', 'state', 'action', 'name', 'kind'])
    .where('organization_id', '=', scope.organizationId)
    .where('deployment_id', '=', sql<string>`any(${deploymentIds})`)
    .execute();

/** The next number of an environment, given under its row's lock: the order of numbers is the order of commits. */
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
  snapshot: unknown;
  requested_by: string | null;
  requested_by_name: string;
  origin: string;
  automatic: boolean;
}

export const insertDeployment = (db: Database, { snapshot, ...deployment }: NewDeployment) =>
  db
    .insertInto('deployment')
    .values({ ...deployment, snapshot: json(snapshot) })
    .execute();

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
  state: State;
}

export const insertDeploymentServices = (db: Database, services: NewDeploymentService[]) =>
  db.insertInto('deployment_service').values(services).execute();

/** Replaces the snapshot of a waiting deployment that a new request joins. */
export const joinDeployment = (
  db: Database,
  scope: Scope,
  id: string,
  change: { snapshot: unknown; requested_by: string | null; requested_by_name: string; origin: string },
) =>
  db
    .updateTable('deployment')
    .set({ ...change, snapshot: json(change.snapshot), updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .where('status', '=', 'WAITING')
    .executeTakeFirst();

/**
 * Moves services of a deployment by a trigger: the only writer of a state, a conditional update. Answers what has moved; a service that the
 * trigger means nothing for stays as it is.
 */
export async function moveServices(
  db: Database,
  scope: Scope,
  deploymentId: string,
  action: DeploymentAction,
  trigger: Trigger,
  only: { serviceId?: string; error?: string } = {},
) {
  const moves = movesOf(action, trigger);
  const to = sql<string>`case state ${sql.join(
    moves.map((move) => sql`when ${sql.lit(move.from)} then ${sql.lit(move.to)}`),
    sql` `,
  )} end`;
  const final = ['succeed', 'fail', 'cancelled', 'cancel'].includes(trigger);
  const target = moves.map((move) => move.from);
  let query = db
    .updateTable('deployment_service')
    .set({
      state: to,
      updated_at: sql`now()`,
      started_at: sql`coalesce(started_at, now())`,
      ...(final ? { ended_at: sql`case when ${to} = 'CANCELING' then null else now() end` } : {}),
      ...(only.error === undefined ? {} : { error: only.error }),
    })
    .where('organization_id', '=', scope.organizationId)
    .where('deployment_id', '=', deploymentId)
    .where('state', '=', sql<string>`any(${target})`);
  if (only.serviceId) query = query.where('service_id', '=', only.serviceId);
  return query.returning(['service_id', 'state', 'name', 'kind', 'error']).execute();
}

/** Ends a deployment. */
export const endDeployment = (
  db: Database,
  scope: Scope,
  id: string,
  outcome: 'SUCCESS' | 'ERROR' | 'CANCELED',
  error: string | null,
) =>
  db
    .updateTable('deployment')
    .set({
      status: 'ENDED',
      outcome,
      error,
      ended_at: sql`now()`,
      updated_at: sql`now()`,
      claim_token: null,
      worker_id: null,
      lease_until: null,
    })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .where('status', '<>', 'ENDED')
    .executeTakeFirst();

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
