import { visibleClusters } from '#platform/access/visibility.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { listLocks, lockCluster, unlockCluster } from '#resources/cluster/lock.ts';
import { lackOf } from '#resources/cluster/work/missing.ts';
import { listClusters } from '#resources/cluster/queries.ts';
import {
  ClusterLock,
  ClusterLockList,
  ClusterLockRequest,
  ClusterReadiness,
  ClusterStatus,
  ClusterStatusList,
} from '#resources/cluster/schema/status.ts';
import { clusterTarget } from '#resources/cluster/target.ts';
import { isLocked, toStatusView } from '#resources/cluster/view.ts';

const PATH = '/organization/{organizationId}/cluster/{clusterId}';
const tag = 'Clusters';

/** Routes for status, readiness and locks of clusters. */
export const stateRoutes: Route[] = [
  defineRoute({
    id: 'getOrganizationClusterStatus',
    method: 'GET',
    path: '/organization/{organizationId}/cluster/status',
    tag,
    summary: 'List the status of every cluster',
    description: 'Answers one state for each cluster that you may read, and whether its configuration is deployed.',
    target: organizationTarget,
    action: 'cluster.read',
    filtersRows: true,
    answer: { status: 200, body: ClusterStatusList },
    handler: async ({ db, clock, principal, target }) => ({
      results: (await listClusters(db, target).where(visibleClusters(principal, target.organizationId)).execute()).map(
        (row) => toStatusView(row, clock.now()),
      ),
    }),
  }),
  defineRoute({
    id: 'getClusterStatus',
    method: 'GET',
    path: `${PATH}/status`,
    tag,
    summary: 'Get the status of a cluster',
    description: 'Answers the state of the last work on the cluster, and whether its configuration is deployed.',
    target: clusterTarget,
    action: 'cluster.read',
    answer: { status: 200, body: ClusterStatus },
    readsOnlyTarget: true,
    handler: ({ clock, target }) => toStatusView(target, clock.now()),
  }),
  defineRoute({
    id: 'getClusterReadinessStatus',
    method: 'GET',
    path: `${PATH}/isReady`,
    tag,
    summary: 'Tell whether a cluster has all that its deployment needs, and is not locked',
    description:
      'Answers only whether a deployment of the cluster could begin. The log of a deployment that could not says what is missing.',
    target: clusterTarget,
    action: 'cluster.read',
    answer: { status: 200, body: ClusterReadiness },
    handler: async (call) => ({
      is_ready: (await lackOf(call, call.target)) === undefined && !isLocked(call.target, call.clock.now()),
    }),
  }),
  defineRoute({
    id: 'listClusterLock',
    method: 'GET',
    path: '/organization/{organizationId}/lock',
    tag: 'Organization Cluster Lock',
    summary: 'List the clusters that are locked',
    description: 'Answers who locked each cluster, why and until when.',
    target: organizationTarget,
    action: 'cluster.read',
    filtersRows: true,
    answer: { status: 200, body: ClusterLockList },
    handler: (call) => listLocks(call, call.principal, call.target.organizationId),
  }),
  defineRoute({
    id: 'lockCluster',
    method: 'POST',
    path: '/cluster/{clusterId}/lock',
    tag,
    summary: 'Lock a cluster, so that nothing is deployed on it',
    description: 'Deployments on the cluster answer 409 until the lock is removed or its days are over.',
    target: clusterTarget,
    action: 'cluster.edit',
    body: ClusterLockRequest,
    answer: { status: 200, body: ClusterLock },
    errors: [409],
    handler: (call) => lockCluster(call, call.target, call.body),
  }),
  defineRoute({
    id: 'unlockCluster',
    method: 'DELETE',
    path: '/cluster/{clusterId}/lock',
    tag,
    summary: 'Unlock a cluster',
    description: 'Deployments on the cluster are accepted again.',
    target: clusterTarget,
    action: 'cluster.edit',
    answer: { status: 204, body: null },
    handler: (call) => unlockCluster(call, call.target),
  }),
];
