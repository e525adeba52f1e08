import { notFound } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import {
  discardFailed,
  executionIdOf,
  findExecutionById,
  listExecutions,
  readExecutionLog,
  type ExecutionRow,
} from '#deployments/index.ts';
import { LineIds } from '#services/capabilities/service/logs/line-id.ts';
import { audit } from '#platform/events/audit.ts';
import { placeOfService } from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';

const textOf = (date: Date | null): string | null => date?.toISOString() ?? null;

const secondsOf = (from: Date | null, to: Date | null): number | null =>
  from && to ? Math.max(0, Math.round((to.getTime() - from.getTime()) / 1000)) : null;

/** A run as it is answered. */
export const toExecutionView = (row: ExecutionRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  event: row.event,
  state: row.state,
  scheduled_at: textOf(row.scheduled_at),
  started_at: textOf(row.started_at),
  ended_at: textOf(row.ended_at),
  duration_sec: secondsOf(row.started_at, row.ended_at),
  attempts: row.attempts,
  exit_code: row.exit_code,
  signal: row.signal,
  reason: row.reason,
  error: row.error,
  deployment_request_id: row.deployment_id,
  execution_id: row.number === null ? null : executionIdOf(row.environment_id, row.number),
});

/** The last lines of a run. 404 for one that the job never had, or that was cleaned away. */
export async function readLog(context: Context, job: ServiceTarget, executionId: string, tail: number) {
  const row = await findExecutionById(context.db, job, job.id, executionId);
  if (!row) throw notFound('Execution');
  return logOf(context, job, row, tail);
}

/** Reads the last lines of a job's newest run, oldest first. */
export async function readNewestLog(context: Context, job: ServiceTarget, tail: number) {
  const row = await listExecutions(context.db, job, job.id).limit(1).executeTakeFirst();
  if (!row) return { run: '', lines: [] };
  const { lines } = await readExecutionLog(context.db, job, { ...row, service_id: job.id }, tail);
  return { run: row.id, lines };
}

async function logOf(context: Context, job: ServiceTarget, row: ExecutionRow, tail: number) {
  const { lines } = await readExecutionLog(context.db, job, { ...row, service_id: job.id }, tail);
  const ids = new LineIds();
  return lines.map(({ at, text }) => ({
    id: ids.next(row.id, at, text),
    created_at: at,
    message: text,
  }));
}

/**
 * Has what failed runs of jobs left cleaned away: their records and logs are no longer seen, and what is left of them in the runtime is removed
 * by the worker that reaches it. Answers the names of that.
 */
export async function cleanFailed(context: Context, organizationId: string, serviceIds: string[]): Promise<string[]> {
  const rows = await discardFailed(context.db, { organizationId }, serviceIds);
  return rows.flatMap(({ tasks, attempts }) => tasks.slice(0, attempts));
}

/** The same for one job. */
export async function cleanJob(context: Context, job: ServiceTarget) {
  const names = await cleanFailed(context, job.organizationId, [job.id]);
  const { organizationId } = job;
  await audit(context, {
    organizationId,
    type: 'UPDATE',
    ...placeOfService(job),
    after: { cleaned_failed_jobs: names },
  });
  return { clean_kubernetes_jobs: names };
}
