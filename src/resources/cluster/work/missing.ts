import type { Context } from '#platform/context.ts';
import { mayUseOwnAccount } from '#resources/cluster/own-account.ts';

/** Columns that tell whether a cluster can be deployed. */
export interface Deployable {
  organization_id: string;
  name: string;
  runtime: string;
  node_id: string | null;
  has_kubeconfig: boolean;
}

export interface Lack {
  message: string;
  /** Way to mend it. */
  hint: string;
}

/** Returns why a cluster cannot be deployed, or undefined if it can. Called by isReady and, before it begins, by the cluster's work. */
export async function lackOf(parts: Pick<Context, 'db' | 'settings'>, cluster: Deployable): Promise<Lack | undefined> {
  if (cluster.runtime === 'kubernetes' && !cluster.has_kubeconfig && !(await mayUseOwnAccount(parts, cluster)))
    return {
      message: `Cluster ${cluster.name} has no kubeconfig, and no Kubernetes is made from here.`,
      hint: 'Make the Kubernetes cluster yourself, then PUT its kubeconfig to /organization/{organizationId}/cluster/{clusterId}/kubeconfig.',
    };
  if ((cluster.runtime === 'host' || cluster.runtime === 'docker') && cluster.node_id === null)
    return {
      message: `Cluster ${cluster.name} lives on no machine.`,
      hint: 'Make the cluster anew with the node_id of the machine that it is for.',
    };
  return undefined;
}
