import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import type { Call } from '#platform/http/route.ts';
import { CLUSTER_WORK } from '#resources/cluster/channels.ts';
import * as queries from '#resources/cluster/queries.ts';
import { auditCluster, findRow, refuseLocked } from '#resources/cluster/rules.ts';
import { COURSES, type WorkAction } from '#resources/cluster/work/states.ts';
import type { ClusterTarget } from '#resources/cluster/target.ts';
import { toStatusView } from '#resources/cluster/view.ts';
import * as work from '#resources/cluster/work/queries.ts';

const FIRST_LOOK_MS = 50;
const LONGEST_LOOK_MS = 500;

/**
 * Queues work on a cluster, whose row the caller's transaction has locked. It joins the last waiting one if that asks the same.
 * The queued state is stored before the answer, unless other work is under way: then that one's state stays until it has ended.
 * 409 while the cluster is locked (docs/contributing/rules.md 16).
 */
export async function requestWork(context: Context, cluster: queries.ClusterRow, action: WorkAction): Promise<unknown> {
  refuseLocked(context, cluster);
  const scope = { organizationId: cluster.organization_id };
  const open = await work.listOpenWork(context.db, scope, cluster.id);
  const last = open.at(-1);
  for (const type of COURSES[action].requested) await auditCluster(context, cluster, type);
  if (last?.status !== 'WAITING' || last.action !== action) {
    await work.insertWork(context.db, {
      id: newId(),
      organization_id: cluster.organization_id,
      cluster_id: cluster.id,
      number: await work.takeWorkNumber(context.db, scope, cluster.id),
      action,
      requested_by: context.actor.userId,
      requested_by_name: context.actor.name,
      origin: context.actor.origin,
      user_agent: context.actor.userAgent,
    });
    if (open.length === 0) await queries.setState(context.db, scope, cluster.id, COURSES[action].queued);
    await work.pruneWork(context.db, scope, cluster.id);
  }
  context.afterCommit(() => context.notify(CLUSTER_WORK, cluster.id));
  return toStatusView(await findRow(context, cluster.organization_id, cluster.id), context.clock.now());
}

/** Returns the status again once the work in the answer has ended or the time (seconds) is over. */
export async function settleWork(
  call: Pick<Call<ClusterTarget>, 'db' | 'clock' | 'signal' | 'target'>,
  answer: unknown,
  seconds: number,
): Promise<unknown> {
  const scope = { organizationId: call.target.organization_id };
  const workId = (answer as { last_execution_id: string }).last_execution_id;
  const end = Date.now() + seconds * 1000;
  for (
    let pause = FIRST_LOOK_MS;
    Date.now() < end && !call.signal.aborted;
    pause = Math.min(pause * 2, LONGEST_LOOK_MS)
  ) {
    const found = await work.findWork(call.db, scope, workId);
    if (!found || found.status === 'ENDED') break;
    await new Promise((resolve) => setTimeout(resolve, Math.min(pause, Math.max(0, end - Date.now()))));
  }
  const row = await queries.findClusterById(call.db, [scope.organizationId], call.target.id);
  return row ? toStatusView(row, call.clock.now()) : answer;
}
