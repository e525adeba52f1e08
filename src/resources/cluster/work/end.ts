import type { Origin } from '#platform/access/principal.ts';
import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import { ClaimLost } from '#platform/work/index.ts';
import type { RuntimeReport } from '#runtimes/runtime.ts';
import * as queries from '#resources/cluster/queries.ts';
import { capabilitiesColumn } from '#resources/cluster/reached.ts';
import { auditCluster } from '#resources/cluster/rules.ts';
import { endOnCluster, endWork, logWork, type ClusterClaim } from '#resources/cluster/work/claims.ts';
import { listOpenWork, type LogEntry } from '#resources/cluster/work/queries.ts';
import { COURSES, type WorkEnd } from '#resources/cluster/work/states.ts';

/** Outcome of work on a cluster. */
export interface WorkOutcome {
  end: WorkEnd;
  /** Reason of the failure; null after success. */
  error: string | null;
  /** Way to mend it. */
  hint?: string;
  report?: RuntimeReport;
}

/** Ends the work: its last line, the state, the event, in one transaction. `version` is the configuration's when the work began. */
export async function endClusterWork(
  platform: Platform,
  claim: ClusterClaim,
  version: number,
  { end, error, hint, report }: WorkOutcome,
): Promise<void> {
  const course = COURSES[claim.action];
  await inTransaction(requesterContext(platform, claim), async (context) => {
    const scope = { organizationId: claim.organization_id };
    const isThere = await queries.lockCluster(context.db, [claim.organization_id], claim.cluster_id);
    const row = isThere && (await queries.findClusterById(context.db, [claim.organization_id], claim.cluster_id));
    if (!row) throw new ClaimLost();
    await logWork(context.db, claim, lastLine(claim, row.name, error, hint));
    await endWork(context.db, claim, error);
    const [next] = await listOpenWork(context.db, scope, claim.cluster_id);
    const settled = course.ends[end] ?? row.settled_state;
    const deploys = claim.action === 'DEPLOY' || claim.action === 'UPGRADE';
    await endOnCluster(context.db, claim, {
      state: next ? COURSES[next.action as ClusterClaim['action']].queued : settled,
      settled_state: settled,
      ...(report?.ok ? { engine_version: report.description, capabilities: capabilitiesColumn(report) } : {}),
      // The version that was read when the work began: what was edited meanwhile is not deployed.
      ...(deploys && end === 'succeeded' ? { deployed_version: version } : {}),
      deployed: deploys,
    });
    await auditCluster(context, row, error === null ? course.succeeded : course.failed, {
      after: { state: settled, ...(error === null ? {} : { error }) },
    });
  });
}

/** Returns the context for events of the end, which carry the requester of the work. */
const requesterContext = (platform: Platform, claim: ClusterClaim): Context => ({
  ...systemContext(platform),
  actor: {
    userId: claim.requested_by,
    name: claim.requested_by_name,
    origin: claim.origin as Origin,
    userAgent: claim.user_agent,
  },
});

function lastLine(claim: ClusterClaim, name: string, error: string | null, hint: string | undefined): LogEntry {
  const stops = claim.action === 'STOP';
  if (error !== null) return { step: stops ? 'PauseError' : 'CreateError', message: error, isError: true, hint };
  if (claim.action === 'DRY_RUN')
    return { step: 'Created', message: `Cluster ${name} can be deployed; nothing was changed.` };
  return {
    step: stops ? 'Paused' : 'Created',
    message: `Cluster ${name} is ${stops ? 'stopped' : 'deployed'}.`,
  };
}
