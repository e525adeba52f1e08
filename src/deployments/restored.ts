import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { cancelDeployment } from '#deployments/cancel.ts';
import type { Snapshot } from '#deployments/model/snapshot.ts';
import { requestEventsOf } from '#deployments/model/names.ts';
import type { DeploymentAction } from '#deployments/model/states.ts';
import * as queries from '#deployments/queries.ts';
import { eventOf } from '#deployments/request.ts';

/**
 * Ends the deployments that a restored database says are running: their workers are gone, and their real end is unknown. Their services are
 * marked dirty, so that the next deployment skips nothing. Returns their number.
 */
export async function endInterrupted(context: Context, why: string): Promise<number> {
  const running = await listByStatus(context, ['RUNNING', 'RECAP']);
  for (const deployment of running) await endOne(context, deployment, why);
  return running.length;
}

/** Cancels all requests that wait in the queue of a restored database. Returns their number. */
export async function cancelAllWaiting(context: Context): Promise<number> {
  const waiting = await listByStatus(context, ['WAITING']);
  for (const deployment of waiting)
    await cancelDeployment(context, { organizationId: deployment.organization_id }, deployment);
  return waiting.length;
}

/**
 * Ends the running and waiting executions of schedules in a restored database, and resets every schedule. Each begins anew from the time at
 * which work resumes: executions that were due in between may have run after the backup.
 */
export async function endExecutions({ db }: Context, why: string): Promise<void> {
  await sql`update job_execution set state = case state when 'RUNNING' then 'FAILED' else 'CANCELED' end, error = ${why},
    claim_token = null, lease_until = null, ended_at = now() where state in ('WAITING', 'RUNNING')`.execute(db);
  await db.deleteFrom('cron_schedule').execute();
}

/** Holds back every service that should run: the watcher leaves it alone until it was seen running, or is deployed. */
export const holdServices = (db: Database) =>
  db
    .updateTable('service')
    .set({ restored_at: sql`now()` })
    .where('wanted', '=', 'running')
    .execute();

/** Releases the services that a restore holds back: their machine's watcher starts those that do not run. Returns how many. */
export async function releaseServices(db: Database): Promise<number> {
  const held = await db
    .updateTable('service')
    .set({ restored_at: null })
    .where('restored_at', 'is not', null)
    .executeTakeFirst();
  return Number(held.numUpdatedRows);
}

const listByStatus = ({ db }: Context, statuses: string[]) =>
  db
    .selectFrom('deployment')
    .selectAll()
    .where('status', '=', sql<string>`any(${statuses})`)
    .orderBy('environment_id')
    .orderBy('number')
    .forUpdate()
    .execute();

async function endOne(context: Context, deployment: queries.DeploymentRow, why: string): Promise<void> {
  const { db } = context;
  const scope = { organizationId: deployment.organization_id };
  const action = deployment.action as DeploymentAction;
  const cancelled = deployment.cancel_requested_at !== null;
  const moved = await queries
    .moveServices(db, scope, deployment.id, action, cancelled ? 'cancelled' : 'fail', {
      error: { code: 'FAILED', step: null, message: why, cause: null },
    })
    .execute();
  await queries.markDirty(
    db,
    scope,
    moved.map((service) => service.service_id),
  );
  await db
    .updateTable('deployment_step')
    .set({ status: cancelled ? 'CANCEL' : 'ERROR', error: why, ended_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('deployment_id', '=', deployment.id)
    .where('status', '=', 'STARTED')
    .execute();
  await db
    .updateTable('deployment')
    .set({ ...queries.ENDED, outcome: cancelled ? 'CANCELED' : 'ERROR', error: why })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', deployment.id)
    .execute();
  if (action === 'DELETE') await queries.revive(db, scope, deployment);
  if (!cancelled) await tell(context, deployment);
}

/** Records the event of a deployment's end (docs/contributing/rules.md 42). Webhooks are not called: their content may be wrong by now. */
async function tell(context: Context, deployment: queries.DeploymentRow): Promise<void> {
  const scope = { organizationId: deployment.organization_id };
  const place = await queries.selectPlace(context.db, scope, deployment.environment_id).executeTakeFirstOrThrow();
  const { services } = deployment.snapshot as Snapshot;
  const type = requestEventsOf(deployment.action as DeploymentAction, services).failed;
  await audit(context, eventOf({ place, whole: deployment.whole_environment, services }, type));
}
