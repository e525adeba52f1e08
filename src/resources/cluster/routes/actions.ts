import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import { requestWork, settleWork } from '#resources/cluster/work/actions.ts';
import type { ClusterNeeds } from '#resources/cluster/needs.ts';
import { refuseLocked } from '#resources/cluster/rules.ts';
import { ClusterStatus } from '#resources/cluster/schema/status.ts';
import { clusterTarget } from '#resources/cluster/target.ts';

const PATH = '/organization/{organizationId}/cluster/{clusterId}';

const action = {
  method: 'POST',
  tag: 'Clusters',
  action: 'cluster.deploy',
  answer: { status: 200, body: ClusterStatus },
} as const;

/** Routes that request work on a cluster. Work is queued; the answer is the cluster's status (docs/contributing/rules.md 5). */
export const actionRoutes = (needs: ClusterNeeds): Route[] => [
  defineRoute({
    ...action,
    target: clusterTarget,
    errors: [409],
    settle: (call, answer, seconds) => settleWork(call, answer, seconds),
    id: 'deployCluster',
    path: `${PATH}/deploy`,
    summary: 'Deploy a cluster: check that it can be used, and take its configuration over',
    description: 'Answers with the new state; the work goes on. 409 while the cluster is locked.',
    query: Type.Object({
      dry_run: Type.Optional(Type.Boolean({ description: 'Only check; the state goes back to what it was.' })),
    }),
    handler: (call) => requestWork(call, call.target, call.query.dry_run ? 'DRY_RUN' : 'DEPLOY'),
  }),
  defineRoute({
    ...action,
    target: clusterTarget,
    errors: [409],
    settle: (call, answer, seconds) => settleWork(call, answer, seconds),
    id: 'stopCluster',
    path: `${PATH}/stop`,
    summary: 'Stop a cluster with everything on it',
    description:
      'Requests that every environment on it stops, then waits for that. Services stay stopped until they are deployed again.',
    handler: async (call) => {
      refuseLocked(call, call.target);
      await needs.stopEnvironments(call, call.target);
      return requestWork(call, call.target, 'STOP');
    },
  }),
  defineRoute({
    ...action,
    target: clusterTarget,
    errors: [409],
    settle: (call, answer, seconds) => settleWork(call, answer, seconds),
    id: 'upgradeCluster',
    path: '/cluster/{clusterId}/upgrade',
    summary: 'Take over the version that the runtime of a cluster has now',
    description:
      'A container engine or Kubernetes is upgraded where it is installed; this checks the new version as a deployment does and records it.',
    handler: (call) => requestWork(call, call.target, 'UPGRADE'),
  }),
];
