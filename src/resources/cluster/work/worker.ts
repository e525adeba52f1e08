import { inTransaction, systemContext } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import { WorkLoop, type ClaimRequest, type WorkKind, type WorkReport } from '#platform/work/index.ts';
import { CLUSTER_WORK } from '#resources/cluster/channels.ts';
import { endExpiredLocks } from '#resources/cluster/lock.ts';
import { setState } from '#resources/cluster/queries.ts';
import { COURSES } from '#resources/cluster/work/states.ts';
import { claimWork, CLUSTER_WORK_TABLE, type ClusterClaim } from '#resources/cluster/work/claims.ts';
import { giveUpWork, MOST_ATTEMPTS, runWork, type WorkParts } from '#resources/cluster/work/run.ts';

export type { ClusterReport, ClusterToCheck } from '#resources/cluster/work/run.ts';

export interface ClusterWorkerOptions extends Omit<WorkParts, 'checkTimeoutMs'> {
  /** Id of this machine: clusters on other machines are left to the workers there. */
  nodeId: string;
  /** Seconds that a claim holds without being renewed. */
  leaseSeconds?: number;
  pollMs?: number;
  checkTimeoutMs?: number;
  /** Clusters that one process works on at a time. */
  slots?: number;
}

/** Status report of the work on clusters. */
export const CLUSTER_WORK_REPORT: WorkReport = { name: 'cluster-work', status: CLUSTER_WORK_TABLE.status };

/** Carries out the work on clusters, and ends locks whose time is over. */
export const createClusterWorker = (options: ClusterWorkerOptions): WorkLoop<ClusterClaim> =>
  new WorkLoop(clusterWork({ leaseSeconds: 15, pollMs: 1000, checkTimeoutMs: 60_000, slots: 4, ...options }), options);

const clusterWork = (options: Required<ClusterWorkerOptions>): WorkKind<ClusterClaim> => ({
  name: CLUSTER_WORK_REPORT.name,
  leaseSeconds: options.leaseSeconds,
  slots: options.slots,
  pollMs: options.pollMs,
  channel: CLUSTER_WORK,
  prepare: () => inTransaction(systemContext(options.platform), endExpiredLocks),
  claim: claimUpTo,
  renew: CLUSTER_WORK_TABLE.renew,
  giveBack: (db, claim, stoppedBy) => CLUSTER_WORK_TABLE.giveBack(db, claim, stoppedBy, options.leaseSeconds),
  run: (claim, lease) => runWork(options, claim, lease),
  attempts: { most: MOST_ATTEMPTS, of: ({ attempts }) => attempts, giveUp: (claim) => giveUpWork(options, claim) },
  fields: (claim) => ({ clusterId: claim.cluster_id, workId: claim.id }),
});

/** Claims one item after the other: each changes the state of its cluster in its own transaction. */
async function claimUpTo(db: Database, { limit, nodeId, leaseSeconds }: ClaimRequest): Promise<ClusterClaim[]> {
  const claims: ClusterClaim[] = [];
  try {
    while (claims.length < limit) {
      const claim = await db.transaction().execute((inside) => claimOne(inside, nodeId, leaseSeconds));
      if (!claim) break;
      claims.push(claim);
    }
  } catch (error) {
    // What is claimed already begins; the next look meets the error again.
    if (claims.length === 0) throw error;
  }
  return claims;
}

async function claimOne(db: Database, nodeId: string, leaseSeconds: number): Promise<ClusterClaim | undefined> {
  const claim = await claimWork(db, nodeId, leaseSeconds);
  if (claim)
    await setState(db, { organizationId: claim.organization_id }, claim.cluster_id, COURSES[claim.action].running);
  return claim;
}
