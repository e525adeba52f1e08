import { badRequest } from '#kernel/errors.ts';
import { permits, type Principal } from '#platform/access/principal.ts';
import type { Database } from '#platform/database/index.ts';
import { slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { clusterTarget, type ClusterTarget } from '#resources/cluster/index.ts';
import { listKubernetesClusters } from '#resources/cluster-operator/queries.ts';
import * as schema from '#resources/cluster-operator/schema.ts';

const tag = 'Cluster Operator';
const PATH = '/organization/{organizationId}/cluster/{clusterId}/operator';

const NOT_ATTACHED = {
  last_heartbeat: null,
  desired_image_version: null,
  desired_chart_version: null,
  reported_chart_version: null,
  status: 'NOT_ATTACHED' as const,
};

/** 400: clusters are reached from here, and nothing of this program is installed in them. */
const refuse = ({ target }: { target: ClusterTarget }): never => {
  throw badRequest(
    `Cluster ${target.name} takes no operator: this installation reaches a cluster itself, with its kubeconfig or on its machine, and installs nothing in it.`,
  );
};

/** The Kubernetes clusters that the caller may read, each without an operator. */
async function listFleet(db: Database, principal: Principal) {
  const organizationIds = principal.grants.map(({ organizationId }) => organizationId);
  const rows = await listKubernetesClusters(db, organizationIds);
  return rows
    .filter(({ organization_id, id }) =>
      permits(principal, 'cluster.read', { organizationId: organization_id, clusterId: id }),
    )
    .map((row) => ({
      ...NOT_ATTACHED,
      organization_id: row.organization_id,
      cluster_id: row.id,
      cluster_name: row.name,
      cluster_kind: schema.CLUSTER_KINDS[row.cloud_provider as 'AWS'] ?? 'SELF_MANAGED',
      attached: false,
      connected: false,
      reported_image_version: null,
    }));
}

/** Operator that the reference interface installs in clusters. Here clusters are reached without one (decision 0043). */
export const clusterOperatorRoutes: Route[] = [
  defineRoute({
    id: 'attachClusterOperator',
    method: 'POST',
    path: `${PATH}/attach`,
    tag,
    summary: 'Attach an operator to a cluster: refused, with the reason',
    description:
      'This installation reaches clusters itself and installs nothing in them: every call is answered with 400.',
    target: clusterTarget,
    action: 'cluster.edit',
    answer: { status: 204, body: null },
    handler: refuse,
  }),
  defineRoute({
    id: 'getClusterOperatorBootstrap',
    method: 'GET',
    path: `${PATH}/bootstrap`,
    tag,
    summary: 'Get how an operator is installed in a cluster: refused, with the reason',
    description: 'There is no operator to install: every call is answered with 400.',
    target: clusterTarget,
    action: 'cluster.edit',
    answer: { status: 200, body: schema.OperatorBootstrap },
    errors: [400],
    handler: refuse,
  }),
  defineRoute({
    id: 'getClusterOperatorStatus',
    method: 'GET',
    path: `${PATH}/status`,
    tag,
    summary: 'Get the state of the operator of a cluster',
    description:
      'The state is NOT_ATTACHED: clusters are reached without an operator. GET …/status tells of the cluster itself.',
    target: clusterTarget,
    action: 'cluster.read',
    answer: { status: 200, body: schema.OperatorStatus },
    handler: ({ target }) => ({
      ...NOT_ATTACHED,
      organization_id: target.organizationId,
      cluster_id: target.id,
      operator_connected: false,
      operator_version: null,
      controller_version: null,
      request_schema_version: null,
      reported_identity: null,
    }),
  }),
  defineRoute({
    id: 'updateClusterOperator',
    method: 'POST',
    path: `${PATH}/update`,
    tag,
    summary: 'Update the operator of a cluster: refused, with the reason',
    description: 'There is no operator to update: every call is answered with 400.',
    target: clusterTarget,
    action: 'cluster.deploy',
    body: schema.OperatorUpdateRequest,
    answer: { status: 202, body: schema.OperatorUpdate },
    handler: refuse,
  }),
  defineRoute({
    id: 'listClusterOperatorFleet',
    method: 'GET',
    path: '/admin/operator/clusters',
    tag,
    summary: 'List your Kubernetes clusters with the state of their operators',
    description:
      'Answers the Kubernetes clusters that you may read, in every organization of yours; none has an operator.',
    action: 'authenticated',
    query: PageQuery,
    answer: { status: 200, body: schema.OperatorFleet },
    handler: async ({ db, principal, query }) => slicePage(await listFleet(db, principal), query),
  }),
];
