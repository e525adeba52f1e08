import { listOf, type AccessList } from '#resources/cluster/accesses.ts';
import type { AccessRow, ClusterRow } from '#resources/cluster/queries.ts';

/** Default values of fields that a request may leave out (reference interface). */
const DEFAULTS = { min_running_nodes: 1, max_running_nodes: 1, disk_size: 40 };

/** Kubernetes kind of a cluster that doesn't name one: what isn't made from here isn't managed either. */
export const kubernetesOf = (runtime: string): string => (runtime === 'kubernetes' ? 'MANAGED' : 'SELF_MANAGED');

/** Returns a cluster as it is answered, without secrets: the row has none either. */
export const toClusterView = (row: ClusterRow) => {
  const { features = [], ...spec } = row.spec as Record<string, unknown> & { features?: FeatureValue[] };
  return {
    ...DEFAULTS,
    kubernetes: kubernetesOf(row.runtime),
    ...spec,
    id: row.id,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    organization: { id: row.organization_id },
    name: row.name,
    description: row.description ?? '',
    region: row.region,
    cloud_provider: row.cloud_provider,
    production: row.production,
    status: row.state,
    // Whoever reads this may use the cluster: what a role doesn't let see isn't answered at all.
    has_access: true,
    ...(row.engine_version === null ? {} : { version: row.engine_version }),
    is_default: row.is_default,
    is_demo: false,
    features: features.map(toFeatureView),
    deployment_status: deploymentStatusOf(row),
    ...toAccessLists(row.accesses),
    runtime: row.runtime,
    ...(row.node_id === null ? {} : { node_id: row.node_id }),
  };
};

const deploymentStatusOf = (row: ClusterRow): string => {
  if (row.deployed_version === null) return 'NEVER_DEPLOYED';
  return row.deployed_version === row.version ? 'UP_TO_DATE' : 'OUT_OF_DATE';
};

/** A feature as it is stored. */
export interface FeatureValue {
  id?: string;
  value?: unknown;
}

const toFeatureView = ({ id, value }: FeatureValue) => ({
  ...(id === undefined ? {} : { id }),
  ...(value === undefined || value === null ? {} : { value_object: { type: featureTypeOf(value), value } }),
  is_value_updatable: false,
});

/** Returns the type of a feature's value, told by the value's form. */
export function featureTypeOf(value: unknown): string {
  if (typeof value === 'string') return 'STRING';
  if (typeof value === 'boolean') return 'BOOLEAN';
  const object = value as Record<string, unknown>;
  if ('aws_vpc_eks_id' in object) return 'AWS_USER_PROVIDED_NETWORK';
  if ('vpc_name' in object) return 'GCP_USER_PROVIDED_NETWORK';
  if ('qovery_node_pools' in object) return 'KARPENTER';
  return 'NAT_GATEWAY';
}

const toAccessLists = (accesses: AccessRow[]) => {
  const inList = (list: AccessList) => accesses.filter((access) => listOf(access) === list).map(toAccessView);
  return {
    secret_manager_accesses: inList('secret_manager_accesses'),
    additional_secret_manager_accesses: inList('additional_secret_manager_accesses'),
  };
};

const toAccessView = (access: AccessRow) => ({
  ...access,
  created_at: new Date(access.created_at).toISOString(),
  updated_at: new Date(access.updated_at).toISOString(),
});

/** Returns the lock of a cluster as it is answered, if it has one that holds now. */
export const toLockView = (row: ClusterRow, now: Date) => {
  if (!isLocked(row, now)) return null;
  return {
    reason: row.lock_reason ?? '',
    ...(row.lock_ttl_days === null ? {} : { ttl_in_days: row.lock_ttl_days }),
    cluster_id: row.id,
    locked_at: row.locked_at!.toISOString(),
    owner_name: row.locked_by ?? '',
  };
};

/** Tells whether the lock holds now: the worker removes it only some time after its end. */
export const isLocked = (row: Pick<ClusterRow, 'locked_at' | 'lock_expires_at'>, now: Date): boolean =>
  row.locked_at !== null && (row.lock_expires_at === null || row.lock_expires_at > now);

const STOPPED = new Set(['STOPPED', 'DELETED']);

/** The status of a cluster as it is answered. */
export const toStatusView = (row: ClusterRow, now: Date) => ({
  cluster_id: row.id,
  status: row.state,
  is_deployed: row.deployed_version !== null && !STOPPED.has(row.settled_state),
  // Versions of Kubernetes are their operator's here: none is offered.
  next_k8s_available_version: null,
  last_execution_id: row.last_work_id,
  cluster_lock: toLockView(row, now),
  last_deployment_date: row.last_deployment_at?.toISOString() ?? null,
  reason: row.last_work_action === 'UPGRADE' ? 'MAINTENANCE' : 'UNSPECIFIED',
});
