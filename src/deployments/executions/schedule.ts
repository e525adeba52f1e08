import { nextRun } from '#kernel/cron.ts';
import { newId } from '#kernel/ids.ts';
import { sql, type Database } from '#platform/database/index.ts';
import type { DeployableKind } from '#deployments/model/kind.ts';
import type { ServiceSnapshot } from '#deployments/model/snapshot.ts';

const BATCH = 100;

type Kinds = Record<string, DeployableKind>;

/**
 * Updates the schedules after new releases: services that are not deployed or are stopped have none. If the next release has the same
 * times, they continue, so that a deployment skips none. Safe to be called by several workers at a time.
 */
export async function followReleases(db: Database, kinds: Kinds): Promise<void> {
  await sql`delete from cron_schedule c using service s
    where s.id = c.service_id and (s.wanted <> 'running' or s.deleting or s.release_id is null)`.execute(db);
  const names = Object.keys(kinds).filter((name) => kinds[name]!.executions);
  for (let full = true; full;) {
    const rows = await listChanged(db, names);
    for (const row of rows) await schedule(db, kinds, row);
    full = rows.length === BATCH;
  }
}

const listChanged = (db: Database, kinds: string[]) =>
  db
    .selectFrom('service as s')
    .innerJoin('release as r', 'r.id', 's.release_id')
    .leftJoin('cron_schedule as c', 'c.service_id', 's.id')
    .select(['s.id', 's.organization_id', 's.kind', 'r.id as release_id', 'r.snapshot'])
    .select(['c.expression', 'c.time_zone', 'c.next_at', sql<Date>`now()`.as('now')])
    .where('s.kind', '=', sql<string>`any(${kinds})`)
    .where('s.wanted', '=', 'running')
    .where('s.deleting', '=', false)
    .where(sql<boolean>`c.release_id is distinct from s.release_id`)
    .limit(BATCH)
    .execute();

type Changed = Awaited<ReturnType<typeof listChanged>>[number];

async function schedule(db: Database, kinds: Kinds, row: Changed): Promise<void> {
  const policy = kinds[row.kind]!.executions!(row.snapshot as ServiceSnapshot);
  const { cron } = policy;
  const isSame = cron !== null && row.expression === cron.expression && row.time_zone === cron.timeZone;
  const values = {
    release_id: row.release_id,
    expression: cron?.expression ?? null,
    time_zone: cron?.timeZone ?? null,
    concurrency: policy.concurrency,
    kept_failures: policy.keptFailures,
    kept_seconds: policy.keptSeconds,
    next_at: isSame && row.next_at ? row.next_at : cron && nextRun(cron.expression, cron.timeZone, row.now),
  };
  await db
    .insertInto('cron_schedule')
    .values({ ...values, service_id: row.id, organization_id: row.organization_id })
    .onConflict((conflict) =>
      conflict.column('service_id').doUpdateSet(values).where('cron_schedule.release_id', '<>', row.release_id),
    )
    .execute();
}

/**
 * Makes an execution of each service that is due. Its schedule continues from now: all times missed while no worker looked, or while the
 * cluster was locked, become one execution. Returns whether there may be more.
 */
export async function fireDue(db: Database): Promise<boolean> {
  return db.transaction().execute(async (transaction) => {
    const due = await listDue(transaction);
    for (const row of due) await fire(transaction, row);
    return due.length === BATCH;
  });
}

const listDue = (db: Database) =>
  db
    .selectFrom('cron_schedule as c')
    .innerJoin('service as s', 's.id', 'c.service_id')
    .innerJoin('environment as e', 'e.id', 's.environment_id')
    .innerJoin('cluster as k', 'k.id', 'e.cluster_id')
    .selectAll('c')
    .select(['s.environment_id', sql<Date>`now()`.as('now')])
    .where('c.next_at', '<=', sql<Date>`now()`)
    .where('s.wanted', '=', 'running')
    .where('s.deleting', '=', false)
    .whereRef('s.release_id', '=', 'c.release_id')
    .where('k.locked_at', 'is', null)
    .orderBy('c.next_at')
    .limit(BATCH)
    .forUpdate('c')
    .skipLocked()
    .execute();

async function fire(db: Database, row: Awaited<ReturnType<typeof listDue>>[number]): Promise<void> {
  const scope = { organizationId: row.organization_id };
  if (await mayBegin(db, row)) {
    const { organization_id, environment_id, service_id, concurrency, kept_failures, kept_seconds } = row;
    await db
      .insertInto('job_execution')
      .values({
        id: newId(),
        organization_id,
        environment_id,
        service_id,
        event: 'CRON',
        state: 'WAITING',
        scheduled_at: row.next_at,
        concurrency,
        kept_failures,
        kept_seconds,
      })
      .onConflict((conflict) =>
        conflict.columns(['service_id', 'scheduled_at']).where('scheduled_at', 'is not', null).doNothing(),
      )
      .execute();
  }
  await db
    .updateTable('cron_schedule')
    .set({ next_at: nextRun(row.expression!, row.time_zone!, row.now) })
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', row.service_id)
    .execute();
}

/**
 * Returns whether a due execution is made: not while another one waits, nor beside a running one if the service forbids it. `Replace`
 * cancels the running one.
 */
async function mayBegin(
  db: Database,
  row: { service_id: string; organization_id: string; concurrency: string },
): Promise<boolean> {
  const others = await db
    .selectFrom('job_execution as x')
    .leftJoin('deployment as d', 'd.id', 'x.deployment_id')
    .select(['x.id', 'x.state', 'x.scheduled_at'])
    .where('x.organization_id', '=', row.organization_id)
    .where('x.service_id', '=', row.service_id)
    .where('x.event', '=', 'CRON')
    .where('x.state', 'in', ['WAITING', 'RUNNING'])
    .where(sql<boolean>`(x.scheduled_at is not null or d.status <> 'ENDED')`)
    .execute();
  if (others.some(({ state }) => state === 'WAITING')) return false;
  if (others.length === 0 || row.concurrency === 'Allow') return true;
  if (row.concurrency === 'Forbid') return false;
  await db
    .updateTable('job_execution')
    .set({ cancel_requested_at: sql`now()` })
    .where('organization_id', '=', row.organization_id)
    .where('service_id', '=', row.service_id)
    .where('state', '=', 'RUNNING')
    .where('scheduled_at', 'is not', null)
    .execute();
  return true;
}

/** Cancels the waiting executions of services that are stopped or being removed. */
export const cancelStopped = (db: Database) =>
  sql`update job_execution x set state = 'CANCELED', error = 'The job was stopped before it began.', ended_at = now()
    from service s where s.id = x.service_id and x.state = 'WAITING' and (s.wanted <> 'running' or s.deleting)`.execute(
    db,
  );
