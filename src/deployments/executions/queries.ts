import { storable } from '#kernel/storable.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import type { ExecutionPolicy } from '#deployments/model/kind.ts';
import type { TaskEnd } from '#runtimes/runtime.ts';

/** Event that an execution runs for: of the service's lifecycle, or a time of its schedule (CRON). */
export type ExecutionEvent = 'START' | 'STOP' | 'DELETE' | 'CRON';
type ExecutionState = 'WAITING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELED';

/** End of an execution. */
export interface ExecutionEnd {
  state: 'SUCCEEDED' | 'FAILED' | 'CANCELED';
  attempts: number;
  /** End of the last attempt that ended. */
  end: Pick<TaskEnd, 'exitCode' | 'signal' | 'reason'> | null;
  /** For people, masked. */
  error: string | null;
}

export interface StepExecution {
  id: string;
  organization_id: string;
  environment_id: string;
  service_id: string;
  deployment_id: string;
  event: ExecutionEvent;
  tasks: string[];
}

/** Returns the query that begins the execution of a deployment's step; a later attempt at the step continues it. */
export const beginOfStep = (db: Database, execution: StepExecution, policy: ExecutionPolicy) =>
  db
    .insertInto('job_execution')
    .values({
      ...execution,
      state: 'RUNNING',
      concurrency: policy.concurrency,
      kept_failures: policy.keptFailures,
      kept_seconds: policy.keptSeconds,
      started_at: sql`now()`,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['deployment_id', 'service_id'])
        .where('deployment_id', 'is not', null)
        .doUpdateSet({ state: 'RUNNING', error: null, ended_at: null }),
    )
    .execute();

/** Returns the columns that record the end of an execution. */
export const columnsOf = ({ state, attempts, end, error }: ExecutionEnd) => ({
  state,
  attempts,
  exit_code: end?.exitCode ?? null,
  signal: end?.signal ?? null,
  reason: end?.reason ?? null,
  error: error === null ? null : storable(error),
  ended_at: sql<Date>`now()`,
});

/** Returns the query that ends the execution of a deployment's step. */
export const endOfStep = (
  db: Database,
  scope: Scope,
  step: { deploymentId: string; serviceId: string },
  end: ExecutionEnd,
) =>
  db
    .updateTable('job_execution')
    .set(columnsOf(end))
    .where('organization_id', '=', scope.organizationId)
    .where('deployment_id', '=', step.deploymentId)
    .where('service_id', '=', step.serviceId)
    .execute();

/** State of an execution: CANCELED if its deployment ended without recording its end. */
const STATE = sql<ExecutionState>`case when x.state = 'RUNNING' and x.scheduled_at is null and coalesce(d.status, 'ENDED') = 'ENDED'
  then 'CANCELED' else x.state end`;

/** End of an execution; that of its deployment where it was not recorded. */
const ENDED_AT = sql<Date | null>`coalesce(x.ended_at, case when x.scheduled_at is null then d.ended_at end)`;

/** Lists the executions of a service, newest first, without those that were cleaned away. */
export const listExecutions = (db: Database, scope: Scope, serviceId: string) =>
  db
    .selectFrom('job_execution as x')
    .leftJoin('deployment as d', 'd.id', 'x.deployment_id')
    .select([
      'x.id',
      'x.event',
      'x.deployment_id',
      'x.scheduled_at',
      'x.attempts',
      'x.exit_code',
      'x.signal',
      'x.reason',
    ])
    .select(['x.error', 'x.created_at', 'x.started_at', 'x.environment_id', 'd.number'])
    .select(STATE.as('state'))
    .select(ENDED_AT.as('ended_at'))
    .where('x.organization_id', '=', scope.organizationId)
    .where('x.service_id', '=', serviceId)
    .where('x.discarded', '=', false)
    .orderBy('x.created_at', 'desc')
    .orderBy('x.id');

/** Seconds after the end of an execution in which its last lines may still be stored. */
const LAST_LINES_SECONDS = 10;
const IS_OVER = sql<boolean>`(${STATE} not in ('WAITING', 'RUNNING')
  and coalesce(${ENDED_AT} < now() - ${LAST_LINES_SECONDS} * interval '1 second', true))`;

/** Newest executions of a service among which those that go on are looked for: a service may have hundreds of thousands. */
const LOOKED_AT = 64;

/**
 * Lists the executions of a service that may have new lines, newest first: those of `ids`, and of the newest 64 those that were created at or
 * after `from`, that go on, or that have just ended. No more lines come from one that `is_over`.
 */
export const listFollowedExecutions = (
  db: Database,
  scope: Scope,
  serviceId: string,
  { from, ids }: { from: Date; ids: string[] },
) => {
  const newest = db
    .selectFrom('job_execution')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(LOOKED_AT);
  return db
    .selectFrom('job_execution as x')
    .leftJoin('deployment as d', 'd.id', 'x.deployment_id')
    .select(['x.id', 'x.deployment_id', 'x.created_at'])
    .select(STATE.as('state'))
    .select(IS_OVER.as('is_over'))
    .where('x.organization_id', '=', scope.organizationId)
    .where('x.service_id', '=', serviceId)
    .where('x.id', '=', sql<string>`any(array(${newest}) || ${ids}::uuid[])`)
    .where('x.discarded', '=', false)
    .where(sql<boolean>`(x.created_at >= ${from} or x.id = any(${ids}::uuid[]) or not ${IS_OVER})`)
    .orderBy('x.created_at', 'desc')
    .orderBy('x.id');
};

export type FollowedExecution = Awaited<ReturnType<ReturnType<typeof listFollowedExecutions>['execute']>>[number];

export type ExecutionRow = Awaited<ReturnType<ReturnType<typeof listExecutions>['execute']>>[number];

export const findExecutionById = (db: Database, scope: Scope, serviceId: string, id: string) =>
  listExecutions(db, scope, serviceId).where('x.id', '=', id).executeTakeFirst();

/** Marks failed executions of services to be cleaned away; returns the names of their commands in the runtimes, by service. */
export const discardFailed = (db: Database, scope: Scope, serviceIds: string[]) =>
  db
    .updateTable('job_execution')
    .set({ discarded: true })
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', sql<string>`any(${serviceIds}::uuid[])`)
    .where('state', 'in', ['FAILED', 'CANCELED'])
    .where('discarded', '=', false)
    .returning(['service_id', 'tasks', 'attempts'])
    .execute();
