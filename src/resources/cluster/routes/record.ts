import { visibleClusters } from '#platform/access/visibility.ts';
import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { OneOf, PageQuery, Type } from '#platform/http/schema.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import type { ClusterNeeds } from '#resources/cluster/needs.ts';
import { listClusters } from '#resources/cluster/queries.ts';
import { Cluster, ClusterList, ClusterRequest } from '#resources/cluster/schema/cluster.ts';
import { createCluster, deleteCluster, editCluster } from '#resources/cluster/service.ts';
import { clusterTarget } from '#resources/cluster/target.ts';
import { toClusterView } from '#resources/cluster/view.ts';

const PATH = '/organization/{organizationId}/cluster/{clusterId}';
const tag = 'Clusters';

/** Clusters themselves: list, make, edit, delete. */
export const recordRoutes = (needs: ClusterNeeds): Route[] => [
  defineRoute({
    id: 'listOrganizationCluster',
    method: 'GET',
    path: '/organization/{organizationId}/cluster',
    tag,
    summary: 'List the clusters of an organization',
    description: 'Answers the clusters that you may read, without their secrets.',
    target: organizationTarget,
    action: 'cluster.read',
    filtersRows: true,
    query: PageQuery,
    answer: { status: 200, body: ClusterList },
    handler: ({ db, principal, target, query }) =>
      fetchPage(
        db,
        listClusters(db, target).where(visibleClusters(principal, target.organizationId)),
        query,
        toClusterView,
      ),
  }),
  defineRoute({
    id: 'createCluster',
    method: 'POST',
    path: '/organization/{organizationId}/cluster',
    tag,
    summary: 'Create a cluster',
    description:
      'Nothing is deployed yet. `runtime` says what runs its workloads; without it that is a Kubernetes whose kubeconfig is given afterwards.',
    target: organizationTarget,
    action: 'cluster.edit',
    body: ClusterRequest,
    answer: { status: 201, body: Cluster },
    errors: [409],
    handler: (call) => createCluster(call, needs, call.target.organizationId, call.body),
  }),
  defineRoute({
    id: 'editCluster',
    method: 'PUT',
    path: PATH,
    tag,
    summary: 'Edit a cluster',
    description: 'What is left out stays. Provider, runtime, machine and kind of Kubernetes are fixed.',
    target: clusterTarget,
    action: 'cluster.edit',
    body: ClusterRequest,
    answer: { status: 200, body: Cluster },
    errors: [409],
    handler: (call) => editCluster(call, needs, call.target, call.body),
    current: (call) => Promise.resolve(toClusterView(call.target)),
  }),
  defineRoute({
    id: 'deleteCluster',
    method: 'DELETE',
    path: PATH,
    tag,
    summary: 'Delete a cluster that has no environments',
    description:
      'All modes remove the record only: machines and Kubernetes clusters are not made from here, and what environments ran is torn down with them.',
    target: clusterTarget,
    action: 'cluster.edit',
    query: Type.Object({
      deleteMode: Type.Optional(
        OneOf(['DEFAULT', 'DELETE_CLUSTER_AND_QOVERY_CONFIG', 'DELETE_QOVERY_CONFIG'], {
          description: 'Has no effect: all modes remove the record only.',
        }),
      ),
      skipReconcile: Type.Optional(Type.Boolean({ description: 'Has no effect: nothing is reconciled.' })),
    }),
    answer: { status: 204, body: null },
    errors: [409],
    handler: (call) => deleteCluster(call, call.target),
    current: (call) => Promise.resolve(toClusterView(call.target as never)),
  }),
];
