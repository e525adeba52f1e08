import { anySignal } from '#kernel/lease-signal.ts';
import type { Platform } from '#platform/context.ts';
import type { Lease } from '#platform/work/index.ts';
import {
  deployRefusal,
  endClusterWork,
  findStillRunning,
  logWork,
  openClusterWork,
  openKubeconfigOf,
  type ClusterClaim,
  type ClusterUnderWork,
  type WorkOutcome,
} from '#resources/cluster/index.ts';
import type { RuntimeReport } from '#runtimes/runtime.ts';

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

/** Carries claimed work out and ends it. Throws ClaimLost when another worker has it. */
export async function runWork(parts: WorkParts, claim: ClusterClaim, lease: Lease): Promise<void> {
  const cluster = await openClusterWork(parts.platform.db, claim);
  await logWork(parts.platform.db, claim, {
    step: 'LoadConfiguration',
    message:
      claim.attempts === 1
        ? `${claim.action} of cluster ${cluster.name}, requested by ${claim.requested_by_name}.`
        : `${claim.action} of cluster ${cluster.name} is taken over (attempt ${claim.attempts}).`,
  });
  const outcome = await carryOut(parts, claim, cluster, lease);
  lease.hold();
  await endClusterWork(parts.platform, claim, cluster.version, outcome);
}

/** Ends work that takes its process down again and again. */
export async function giveUpWork(parts: WorkParts, claim: ClusterClaim): Promise<void> {
  const error = `It was begun ${MOST_ATTEMPTS} times, and each time its worker was gone before the end.`;
  const { version } = await openClusterWork(parts.platform.db, claim);
  await endClusterWork(parts.platform, claim, version, { end: 'failed', error });
}

async function carryOut(
  parts: WorkParts,
  claim: ClusterClaim,
  cluster: ClusterUnderWork,
  lease: Lease,
): Promise<WorkOutcome> {
  if (claim.action === 'STOP') return stop(parts, claim);
  const refusal = await deployRefusal(parts.platform, cluster);
  if (refusal) return { end: 'failed', error: refusal.message, hint: refusal.hint };
  return check(parts, claim, cluster, lease);
}

async function stop({ platform: { db } }: WorkParts, claim: ClusterClaim): Promise<WorkOutcome> {
  await logWork(db, claim, { step: 'Pause', message: 'Checking that nothing runs on the cluster any more.' });
  const { names, total } = await findStillRunning(db, claim);
  if (total === 0) return { end: 'succeeded', error: null };
  return {
    end: 'failed',
    error: `${total} ${total === 1 ? 'service still runs' : 'services still run'}: ${names.join(', ')}${total > names.length ? ', …' : ''}.`,
    hint: 'Look why they could not be stopped, stop them, then stop the cluster again.',
  };
}

async function check(
  parts: WorkParts,
  claim: ClusterClaim,
  cluster: ClusterUnderWork,
  lease: Lease,
): Promise<WorkOutcome> {
  const { db } = parts.platform;
  await logWork(db, claim, { step: 'ValidateSystemRequirements', message: `Asking the ${cluster.runtime} runtime.` });
  const { id, organizationId, name, runtime, nodeId } = cluster;
  const kubeconfig = await openKubeconfigOf(parts.platform, cluster);
  lease.hold();
  const report = await askRuntime(parts, { id, organizationId, name, runtime, nodeId, kubeconfig }, lease.signal);
  lease.hold();
  await logWork(db, claim, { step: 'RetrieveClusterConfig', message: report.description, isError: !report.ok });
  for (const limit of report.limits) await logWork(db, claim, { step: 'RetrieveClusterResources', message: limit });
  if (report.ok) {
    if (cluster.engine !== null && cluster.engine !== report.description)
      await logWork(db, claim, {
        step: 'UnderMigration',
        message: `It was ${cluster.engine} before.`,
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
