import { defineRoute, type Route } from '#platform/http/route.ts';
import { clusterEvents } from '#resources/cluster/observation/events.ts';
import { clusterLogs, queryLogs } from '#resources/cluster/observation/logs.ts';
import { queryMetrics } from '#resources/cluster/observation/metrics.ts';
import type { ClusterNeeds } from '#resources/cluster/needs.ts';
import { listEnvironmentsOnCluster } from '#resources/cluster/queries.ts';
import {
  ClusterEnvironmentList,
  ClusterEventList,
  ClusterLogList,
  ClusterLogsAnswer,
  ClusterMetrics,
  EventsQuery,
  LogsQuery,
  MetricsQuery,
} from '#resources/cluster/schema/observation.ts';
import { clusterTarget } from '#resources/cluster/target.ts';

const tag = 'Clusters';

/** Routes for logs, events and metrics of a cluster. */
export const observationRoutes = (needs: ClusterNeeds): Route[] => [
  defineRoute({
    id: 'listClusterLogs',
    method: 'GET',
    path: '/organization/{organizationId}/cluster/{clusterId}/logs',
    tag,
    summary: 'List what the work on a cluster has told, oldest first',
    description: 'Answers each line with its step and time, and with a hint where a step failed.',
    target: clusterTarget,
    action: 'cluster.read',
    answer: { status: 200, body: ClusterLogList },
    handler: (call) => clusterLogs(call, call.target),
  }),
  defineRoute({
    id: 'getClusterLogs',
    method: 'GET',
    path: '/cluster/{clusterId}/logs',
    tag,
    summary: 'Query what the work on a cluster has told, by the interface of Loki',
    description: 'Takes `endpoint`, `query` and a range of time as Loki does, and answers in its form.',
    target: clusterTarget,
    action: 'cluster.read',
    query: LogsQuery,
    answer: { status: 200, body: ClusterLogsAnswer },
    handler: (call) => queryLogs(call, call.target, call.query),
  }),
  defineRoute({
    id: 'getClusterMetrics',
    method: 'GET',
    path: '/cluster/{clusterId}/metrics',
    tag,
    summary: "Query processor and memory of a cluster's services and of its machine, by the interface of Prometheus",
    description:
      'Takes `endpoint` and `query` as Prometheus does, and answers in its form. Metrics of services are `quarterdeck_service_cpu_cores`, `quarterdeck_service_memory_bytes` and the others of docs/guides/monitoring.md, of those services that you may read. Metrics of the machine are refused with 400 for a cluster that is on none.',
    target: clusterTarget,
    action: 'cluster.read',
    query: MetricsQuery,
    filtersRows: true,
    answer: { status: 200, body: ClusterMetrics },
    errors: [502],
    transaction: false,
    handler: (call) => queryMetrics(call, needs, call.target, call.query),
  }),
  defineRoute({
    id: 'getClusterKubernetesEvents',
    method: 'GET',
    path: '/cluster/{clusterId}/events',
    tag,
    summary: 'List what happened on a cluster within a time',
    description: 'Answers what happened to the services of the cluster between the two times of the query.',
    target: clusterTarget,
    action: 'cluster.read',
    query: EventsQuery,
    answer: { status: 200, body: ClusterEventList },
    handler: (call) => clusterEvents(call, call.target, call.query),
  }),
  defineRoute({
    id: 'getEnvironmentsByClusterId',
    method: 'GET',
    path: '/cluster/{clusterId}/environments',
    tag,
    summary: 'List the environments on a cluster with their services',
    description: 'Answers the environments on the cluster that you may read, of all projects.',
    target: clusterTarget,
    action: 'cluster.read',
    filtersRows: true,
    answer: { status: 200, body: ClusterEnvironmentList },
    handler: async ({ db, principal, target }) => ({
      results: await listEnvironmentsOnCluster(db, principal, target, target.id),
    }),
  }),
];
