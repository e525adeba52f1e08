import { anySignal } from '#kernel/lease-signal.ts';
import type { Origin } from '#platform/access/principal.ts';
import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import { ClaimLost, type Lease } from '#platform/work/index.ts';
import { placeRefusal } from '#resources/cluster/allowed.ts';
import { lackOf } from '#resources/cluster/work/missing.ts';
import * as queries from '#resources/cluster/queries.ts';
import { auditCluster } from '#resources/cluster/rules.ts';
import { capabilitiesColumn } from '#resources/cluster/reached.ts';
import type { RuntimeReport } from '#runtimes/runtime.ts';
import { openClusterSecret } from '#resources/cluster/secrets.ts';
import { COURSES, type WorkEnd } from '#resources/cluster/work/states.ts';
import {
  endOnCluster,
  endWork,
  findRunningServices,
  logWork,
  type ClusterClaim,
} from '#resources/cluster/work/claims.ts';
import { listOpenWork, type LogEntry } from '#resources/cluster/work/queries.ts';

/** Attempts without an end after which work is given up, because it takes its process down. */
export const MOST_ATTEMPTS = 5;

/** Cluster as its runtime is asked about it. */
export interface ClusterToCheck {
  id: string;
  organizationId: string;
  name: string;
  runtime: string;
  nodeId: string | null;
  /** Kubeconfig of a Kubernetes cluster, in the clear: never for a log. */
  kubeconfig: string | null;
}

/** Report of a runtime about a cluster. If `ok` is false, `description` is the reason. */
export type ClusterReport = RuntimeReport;

export interface WorkParts {
  platform: Platform;
  /** Asks the cluster's runtime. An error that it throws is taken for one of this program, not of the cluster. */
  checkRuntime(cluster: ClusterToCheck, signal: AbortSignal): Promise<ClusterReport>;
  /** Time limit of `checkRuntime`, in milliseconds. */
  checkTimeoutMs: number;
}

interface Outcome {
  end: WorkEnd;
  /** Reason of the failure; null after success. */
  error: string | null;
  hint?: string;
  report?: ClusterReport;
}

/** Carries claimed work out and ends it. Throws ClaimLost when another worker has it. */
export async function runWork(parts: WorkParts, claim: ClusterClaim, lease: Lease): Promise<void> {
  const row = await findClaimed(parts, claim);
  await logWork(parts.platform.db, claim, {
    step: 'LoadConfiguration',
    message:
      claim.attempts === 1
        ? `${claim.action} of cluster ${row.name}, requested by ${claim.requested_by_name}.`
        : `${claim.action} of cluster ${row.name} is taken over (attempt ${claim.attempts}).`,
  });
  const outcome = await carryOut(parts, claim, row, lease);
  lease.hold();
  await finish(parts.platform, claim, row, outcome);
}

/** Ends work that takes its process down again and again. */
export async function giveUpWork(parts: WorkParts, claim: ClusterClaim): Promise<void> {
  const error = `It was begun ${MOST_ATTEMPTS} times, and each time its worker was gone before the end.`;
  await finish(parts.platform, claim, await findClaimed(parts, claim), { end: 'failed', error });
}

async function findClaimed({ platform: { db } }: WorkParts, claim: ClusterClaim): Promise<queries.ClusterRow> {
  const row = await queries.findClusterById(db, [claim.organization_id], claim.cluster_id);
  if (!row) throw new ClaimLost();
  return row;
}

async function carryOut(
  parts: WorkParts,
  claim: ClusterClaim,
  row: queries.ClusterRow,
  lease: Lease,
): Promise<Outcome> {
  if (claim.action === 'STOP') return stop(parts, claim);
  const refusal = await placeRefusal(parts.platform, claim.organization_id, row);
  if (refusal)
    return { end: 'failed', error: `${refusal.message}.`, hint: 'Ask the operator, or make another cluster.' };
  const lack = lackOf(row);
  if (lack) return { end: 'failed', error: lack.message, hint: lack.hint };
  return check(parts, claim, row, lease);
}

async function stop({ platform: { db } }: WorkParts, claim: ClusterClaim): Promise<Outcome> {
  await logWork(db, claim, { step: 'Pause', message: 'Checking that nothing runs on the cluster any more.' });
  const { names, total } = await findRunningServices(db, claim);
  if (total === 0) return { end: 'succeeded', error: null };
  return {
    end: 'failed',
    error: `${total} ${total === 1 ? 'service still runs' : 'services still run'}: ${names.join(', ')}${total > names.length ? ', …' : ''}.`,
    hint: 'Look why they could not be stopped, stop them, then stop the cluster again.',
  };
}

async function check(parts: WorkParts, claim: ClusterClaim, row: queries.ClusterRow, lease: Lease): Promise<Outcome> {
  const { db } = parts.platform;
  await logWork(db, claim, { step: 'ValidateSystemRequirements', message: `Asking the ${row.runtime} runtime.` });
  const scope = { organizationId: claim.organization_id };
  const cluster: ClusterToCheck = {
    id: row.id,
    organizationId: row.organization_id,
    name: row.name,
    runtime: row.runtime,
    nodeId: row.node_id,
    kubeconfig:
      row.runtime === 'kubernetes' ? await openClusterSecret(parts.platform, scope, row.id, 'kubeconfig') : null,
  };
  lease.hold();
  const report = await askRuntime(parts, cluster, lease.signal);
  lease.hold();
  await logWork(db, claim, { step: 'RetrieveClusterConfig', message: report.description, isError: !report.ok });
  for (const limit of report.limits) await logWork(db, claim, { step: 'RetrieveClusterResources', message: limit });
  if (report.ok) {
    if (row.engine_version !== null && row.engine_version !== report.description)
      await logWork(db, claim, {
        step: 'UnderMigration',
        message: `It was ${row.engine_version} before.`,
      });
    return { end: 'succeeded', error: null, report };
  }
  return { end: 'failed', error: report.description, report };
}

/** Returns the report, or a failed one if there was none in time. */
async function askRuntime(parts: WorkParts, cluster: ClusterToCheck, signal: AbortSignal): Promise<ClusterReport> {
  const deadline = AbortSignal.timeout(parts.checkTimeoutMs);
  const either = anySignal([signal, deadline]);
  let giveUp: () => void = () => undefined;
  const over = new Promise<ClusterReport>((resolve) => {
    giveUp = () =>
      resolve({
        ok: false,
        description: `The ${cluster.runtime} runtime did not answer within ${parts.checkTimeoutMs / 1000} seconds.`,
        limits: [],
      });
    either.addEventListener('abort', giveUp, { once: true });
  });
  try {
    return await Promise.race([parts.checkRuntime(cluster, either), over]);
  } catch (error) {
    parts.platform.log.error({ err: error, clusterId: cluster.id }, 'a runtime could not be asked');
    return {
      ok: false,
      description: `The ${cluster.runtime} runtime could not be asked; the log of the program says why.`,
      limits: [],
    };
  } finally {
    either.removeEventListener('abort', giveUp);
  }
}

/** Ends the work: its last line, the state, the event, in one transaction. */
async function finish(
  platform: Platform,
  claim: ClusterClaim,
  row: queries.ClusterRow,
  { end, error, hint, report }: Outcome,
): Promise<void> {
  const course = COURSES[claim.action];
  await inTransaction(requesterContext(platform, claim), async (context) => {
    const scope = { organizationId: claim.organization_id };
    if (!(await queries.lockCluster(context.db, [claim.organization_id], claim.cluster_id))) throw new ClaimLost();
    await logWork(context.db, claim, lastLine(claim, row, error, hint));
    await endWork(context.db, claim, error);
    const [next] = await listOpenWork(context.db, scope, claim.cluster_id);
    const settled = course.ends[end] ?? row.settled_state;
    const deploys = claim.action === 'DEPLOY' || claim.action === 'UPGRADE';
    await endOnCluster(context.db, claim, {
      state: next ? COURSES[next.action as ClusterClaim['action']].queued : settled,
      settled_state: settled,
      ...(report?.ok ? { engine_version: report.description, capabilities: capabilitiesColumn(report) } : {}),
      // The version that was read when the work began: what was edited meanwhile is not deployed.
      ...(deploys && end === 'succeeded' ? { deployed_version: row.version } : {}),
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

function lastLine(
  claim: ClusterClaim,
  row: queries.ClusterRow,
  error: string | null,
  hint: string | undefined,
): LogEntry {
  const stops = claim.action === 'STOP';
  if (error !== null) return { step: stops ? 'PauseError' : 'CreateError', message: error, isError: true, hint };
  if (claim.action === 'DRY_RUN')
    return { step: 'Created', message: `Cluster ${row.name} can be deployed; nothing was changed.` };
  return {
    step: stops ? 'Paused' : 'Created',
    message: `Cluster ${row.name} is ${stops ? 'stopped' : 'deployed'}.`,
  };
}
