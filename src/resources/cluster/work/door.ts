import { endExpiredLocks } from '#resources/cluster/lock.ts';
import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import { ClaimLost } from '#platform/work/index.ts';
import { placeRefusal } from '#resources/cluster/allowed.ts';
import { findClusterById, setState } from '#resources/cluster/queries.ts';
import { openClusterSecret } from '#resources/cluster/secrets.ts';
import {
  claimWork,
  CLUSTER_WORK_TABLE,
  findRunningServices,
  type ClusterClaim,
} from '#resources/cluster/work/claims.ts';
import { lackOf, type Lack } from '#resources/cluster/work/missing.ts';
import { COURSES } from '#resources/cluster/work/states.ts';

/**
 * Door through which `src/clusters` carries out the work on clusters. Each function is a step with its own transaction; columns and states
 * of the record stay behind it.
 */
export type { ClusterClaim } from '#resources/cluster/work/claims.ts';
export { logWork } from '#resources/cluster/work/claims.ts';
export { endClusterWork, type WorkOutcome } from '#resources/cluster/work/end.ts';

/** Statements on the leases of claimed work. */
export const { renew: renewWork, giveBack: giveBackWork, status: statusOfWork } = CLUSTER_WORK_TABLE;

/** Cluster as its work began. */
export interface ClusterUnderWork {
  id: string;
  organizationId: string;
  name: string;
  runtime: string;
  nodeId: string | null;
  hasKubeconfig: boolean;
  /** Engine that the last successful work found; null before the first. */
  engine: string | null;
  /** Version of the configuration that is deployed. */
  version: number;
}

/** Claims the next work and moves its cluster into the state of that work. */
export const claimClusterWork = (db: Database, nodeId: string, leaseSeconds: number) =>
  db.transaction().execute(async (inside): Promise<ClusterClaim | undefined> => {
    const claim = await claimWork(inside, nodeId, leaseSeconds);
    if (claim)
      await setState(
        inside,
        { organizationId: claim.organization_id },
        claim.cluster_id,
        COURSES[claim.action].running,
      );
    return claim;
  });

/** Ends the locks of clusters whose time is over. */
export const endLocks = (platform: Platform): Promise<void> =>
  inTransaction(systemContext(platform), async (context) => void (await endExpiredLocks(context)));

/** Reads the cluster of claimed work. Throws ClaimLost if it is gone. */
export async function openClusterWork(db: Database, claim: ClusterClaim): Promise<ClusterUnderWork> {
  const row = await findClusterById(db, [claim.organization_id], claim.cluster_id);
  if (!row) throw new ClaimLost();
  return {
    id: row.id,
    organizationId: row.organization_id,
    name: row.name,
    runtime: row.runtime,
    nodeId: row.node_id,
    hasKubeconfig: row.has_kubeconfig,
    engine: row.engine_version,
    version: row.version,
  };
}

/** Returns why a cluster cannot be deployed now, or undefined if it can. */
export async function deployRefusal(platform: Platform, cluster: ClusterUnderWork): Promise<Lack | undefined> {
  const { organizationId, name, runtime, nodeId: node_id, hasKubeconfig: has_kubeconfig } = cluster;
  const refusal = await placeRefusal(platform, organizationId, { runtime, node_id });
  if (refusal) return { message: `${refusal.message}.`, hint: 'Ask the operator, or make another cluster.' };
  return lackOf(platform, { organization_id: organizationId, name, runtime, node_id, has_kubeconfig });
}

/** Opens the kubeconfig of a Kubernetes cluster, never for a log; null for other clusters. */
export const openKubeconfigOf = async (platform: Platform, cluster: ClusterUnderWork): Promise<string | null> =>
  cluster.runtime === 'kubernetes'
    ? openClusterSecret(platform, { organizationId: cluster.organizationId }, cluster.id, 'kubeconfig')
    : null;

/** Finds the names of a few services that still run on the cluster, and the number of all. */
export const findStillRunning = (db: Database, claim: ClusterClaim) => findRunningServices(db, claim);
