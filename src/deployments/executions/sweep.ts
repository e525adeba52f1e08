import { sql, type Database } from '#platform/database/index.ts';
import { Abandoned, withDeadline } from '#kernel/deadline.ts';
import type { EngineParts } from '#deployments/executor/engine.ts';
import { removalSeconds } from '#deployments/executions/run.ts';

const BATCH = 50;

interface Remains {
  id: string;
  organization_id: string;
  project_id: string;
  environment_id: string;
  service_id: string;
  tasks: string[];
  discarded: boolean;
  cluster_id: string;
  runtime: string;
}

type Parts = Pick<EngineParts, 'platform' | 'nodeId' | 'installation' | 'runtimes'>;

/**
 * Removes the remains of ended executions from the runtimes of this machine. Remains of successes go, since their log is kept, and those of
 * failures beyond the number that is kept. Records that were cleaned away follow. A runtime that does not answer is left to the next sweep.
 */
export async function sweepExecutions(parts: Parts, signal: AbortSignal): Promise<void> {
  const { db, log } = parts.platform;
  await sql`update job_execution x set state = 'CANCELED', error = 'It was cut off.', ended_at = d.ended_at from deployment d
    where d.id = x.deployment_id and d.status = 'ENDED' and x.state = 'RUNNING' and x.scheduled_at is null`.execute(db);
  const silent = new Set<string>();
  for (const remains of await listRemains(db, parts.nodeId)) {
    if (silent.has(remains.runtime)) continue;
    try {
      await remove(parts, remains, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Abandoned) silent.add(remains.runtime);
      log.warn(
        { err: error, serviceId: remains.service_id },
        'cannot remove what an execution left; it is tried again',
      );
    }
  }
}

async function listRemains(db: Database, nodeId: string): Promise<Remains[]> {
  const { rows } = await sql<Remains>`
    with left_over as (
      select x.*, row_number() over (partition by x.service_id, x.state = 'SUCCEEDED' order by x.created_at desc, x.id) as rank
      from job_execution x
      where (x.tasks <> '{}' or x.discarded) and x.state in ('SUCCEEDED', 'FAILED', 'CANCELED')
    )
    select x.id, x.organization_id, e.project_id, x.environment_id, x.service_id, x.tasks, x.discarded, k.id as cluster_id, k.runtime
    from left_over x
    join environment e on e.id = x.environment_id
    join cluster k on k.id = e.cluster_id
    left join deployment d on d.id = x.deployment_id
    where (k.node_id is null or k.node_id = ${nodeId})
      -- Until its deployment has ended, a successor may ask for what is there once more.
      and (d.id is null or d.status = 'ENDED')
      and (x.discarded or x.state = 'SUCCEEDED' or x.rank > x.kept_failures
        or x.ended_at < now() - make_interval(secs => x.kept_seconds))
    order by x.created_at limit ${BATCH}`.execute(db);
  return rows;
}

async function remove(parts: Parts, remains: Remains, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { platform, installation, runtimes } = parts;
  const { organization_id: organizationId, project_id: projectId, environment_id: environmentId } = remains;
  if (remains.tasks.length > 0) {
    const identity = {
      installation: installation.id,
      organizationId,
      projectId,
      environmentId,
      serviceId: remains.service_id,
    };
    // A removal that takes longer, or that the end of the worker cuts off, is abandoned and repeated by the next sweep.
    const limits = { seconds: removalSeconds(parts), patience: () => 0, late: (cause: unknown) => cause as Error };
    await withDeadline(signal, limits, async () => {
      const runtime = await runtimes.runtimeOf({ id: remains.cluster_id, runtime: remains.runtime });
      await runtime.removeTasks?.(identity, remains.tasks);
    });
  }
  const of = { organizationId, id: remains.id };
  await (remains.discarded ? deleteExecution(platform.db, of) : forgetTasks(platform.db, of));
}

const deleteExecution = (db: Database, { organizationId, id }: { organizationId: string; id: string }) =>
  db.deleteFrom('job_execution').where('organization_id', '=', organizationId).where('id', '=', id).execute();

const forgetTasks = (db: Database, { organizationId, id }: { organizationId: string; id: string }) =>
  db
    .updateTable('job_execution')
    .set({ tasks: [] })
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .execute();
