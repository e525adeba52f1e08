import type { Database } from '#platform/database/index.ts';
import { WorkLoop, type ClaimRequest, type WorkKind, type WorkReport } from '#platform/work/index.ts';
import { giveUpWork, MOST_ATTEMPTS, runWork, type WorkParts } from '#clusters/work/run.ts';
import {
  claimClusterWork,
  CLUSTER_WORK,
  endLocks,
  giveBackWork,
  renewWork,
  statusOfWork,
  type ClusterClaim,
} from '#resources/cluster/index.ts';

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
export const CLUSTER_WORK_REPORT: WorkReport = { name: 'cluster-work', status: statusOfWork };

/** Carries out the work on clusters, and ends locks whose time is over. */
export const createClusterWorker = (options: ClusterWorkerOptions): WorkLoop<ClusterClaim> =>
  new WorkLoop(clusterWork({ leaseSeconds: 15, pollMs: 1000, checkTimeoutMs: 60_000, slots: 4, ...options }), options);

const clusterWork = (options: Required<ClusterWorkerOptions>): WorkKind<ClusterClaim> => ({
  name: CLUSTER_WORK_REPORT.name,
  leaseSeconds: options.leaseSeconds,
  slots: options.slots,
  pollMs: options.pollMs,
  channel: CLUSTER_WORK,
  prepare: () => endLocks(options.platform),
  claim: claimUpTo,
  renew: renewWork,
  giveBack: (db, claim, stoppedBy) => giveBackWork(db, claim, stoppedBy, options.leaseSeconds),
  run: (claim, lease) => runWork(options, claim, lease),
  attempts: { most: MOST_ATTEMPTS, of: ({ attempts }) => attempts, giveUp: (claim) => giveUpWork(options, claim) },
  fields: (claim) => ({ clusterId: claim.cluster_id, workId: claim.id }),
});

/** Claims one item after the other: each changes the state of its cluster in its own transaction. */
async function claimUpTo(db: Database, { limit, nodeId, leaseSeconds }: ClaimRequest): Promise<ClusterClaim[]> {
  const claims: ClusterClaim[] = [];
  try {
    while (claims.length < limit) {
      const claim = await claimClusterWork(db, nodeId, leaseSeconds);
      if (!claim) break;
      claims.push(claim);
    }
  } catch (error) {
    // What is claimed already begins; the next look meets the error again.
    if (claims.length === 0) throw error;
  }
  return claims;
}
