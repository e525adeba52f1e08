import { sql, type Database, type Scope } from '#platform/database/index.ts';
import type { Step } from '#resources/cluster/schema/observation.ts';
import type { WorkAction } from '#resources/cluster/work/states.ts';

/** Number of ended works that are kept of each cluster, with their logs. */
const KEPT_WORK = 50;

/** Takes the next number of a cluster's queue, under its row's lock. Deployments on it take theirs from the same (migration 0165). */
export const takeWorkNumber = async (db: Database, scope: Scope, clusterId: string): Promise<number> => {
  const row = await db
    .updateTable('cluster')
    .set({ work_number: sql`work_number + 1` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', clusterId)
    .returning('work_number')
    .executeTakeFirstOrThrow();
  return row.work_number;
};

export interface NewWork {
  id: string;
  organization_id: string;
  cluster_id: string;
  number: number;
  action: WorkAction;
  requested_by: string | null;
  requested_by_name: string;
  origin: string;
  user_agent: string | null;
}

export const insertWork = (db: Database, work: NewWork) => db.insertInto('cluster_work').values(work).execute();

/** Work of a cluster that has not ended, in order. */
export const listOpenWork = (db: Database, scope: Scope, clusterId: string) =>
  db
    .selectFrom('cluster_work')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('cluster_id', '=', clusterId)
    .where('status', '<>', 'ENDED')
    .orderBy('number')
    .execute();

export const findWork = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('cluster_work')
    .select(['id', 'status'])
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirst();

/** Deletes all but the newest ended work of a cluster; its logs are deleted with it. */
export const pruneWork = (db: Database, scope: Scope, clusterId: string) =>
  db
    .deleteFrom('cluster_work')
    .where('organization_id', '=', scope.organizationId)
    .where('cluster_id', '=', clusterId)
    .where('status', '=', 'ENDED')
    .where('number', '<=', (eb) =>
      eb
        .selectFrom('cluster_work as newer')
        .select('newer.number')
        .where('newer.organization_id', '=', scope.organizationId)
        .where('newer.cluster_id', '=', clusterId)
        .orderBy('newer.number', 'desc')
        .offset(KEPT_WORK)
        .limit(1),
    )
    .execute();

export interface LogEntry {
  step: Step;
  message: string;
  isError?: boolean;
  /** Way to mend an error. */
  hint?: string;
}

/** Lines about the work on a cluster, oldest first. */
export const listLogs = (db: Database, scope: Scope, clusterId: string) =>
  db
    .selectFrom('cluster_log')
    .innerJoin('cluster_work', 'cluster_work.id', 'cluster_log.work_id')
    .select([
      'cluster_log.at',
      'cluster_log.step',
      'cluster_log.message',
      'cluster_log.is_error',
      'cluster_log.hint',
      'cluster_log.work_id',
      'cluster_work.action',
    ])
    .where('cluster_log.organization_id', '=', scope.organizationId)
    .where('cluster_log.cluster_id', '=', clusterId)
    .orderBy('cluster_work.number')
    .orderBy('cluster_log.sequence');

export type LogRow = Awaited<ReturnType<ReturnType<typeof listLogs>['execute']>>[number];

/** Work of a cluster that was asked for or ended within the time, oldest first. */
export const listWorkBetween = (db: Database, scope: Scope, clusterId: string, from: Date, to: Date) =>
  db
    .selectFrom('cluster_work')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('cluster_id', '=', clusterId)
    .where((eb) =>
      eb.or([
        eb.and([eb('created_at', '>=', from), eb('created_at', '<=', to)]),
        eb.and([eb('ended_at', '>=', from), eb('ended_at', '<=', to)]),
      ]),
    )
    .orderBy('number')
    .execute();
