import { defineRoute, type Route } from '#platform/http/route.ts';
import {
  advancedSettingsOf,
  DEFAULT_ADVANCED_SETTINGS,
  editAdvancedSettings,
} from '#resources/cluster/advanced-settings.ts';
import {
  editDnsProvider,
  editRoutingTable,
  specifyCloudProviderInfo,
  toCloudProviderInfo,
  toDnsProvider,
  toRoutingTable,
} from '#resources/cluster/configuration.ts';
import type { ClusterNeeds } from '#resources/cluster/needs.ts';
import {
  ClusterAdvancedSettings,
  ClusterAdvancedSettingsRequest,
} from '#resources/cluster/schema/advanced-settings.ts';
import {
  ClusterCloudProviderInfo,
  DnsProvider,
  DnsProviderRequest,
  RoutingTable,
  RoutingTableRequest,
} from '#resources/cluster/schema/provider.ts';
import { clusterTarget } from '#resources/cluster/target.ts';

const PATH = '/organization/{organizationId}/cluster/{clusterId}';
const tag = 'Clusters';

/** Configuration that has endpoints of its own. */
export const configurationRoutes = (needs: ClusterNeeds): Route[] => [
  defineRoute({
    id: 'getDefaultClusterAdvancedSettings',
    method: 'GET',
    path: '/defaultClusterAdvancedSettings',
    tag,
    summary: 'Get the defaults of the advanced settings',
    action: 'authenticated',
    answer: { status: 200, body: ClusterAdvancedSettings },
    handler: () => DEFAULT_ADVANCED_SETTINGS,
  }),
  defineRoute({
    id: 'getClusterAdvancedSettings',
    method: 'GET',
    path: `${PATH}/advancedSettings`,
    tag,
    summary: 'Get the advanced settings of a cluster',
    target: clusterTarget,
    action: 'cluster.read',
    answer: { status: 200, body: ClusterAdvancedSettings },
    handler: (call) => advancedSettingsOf(call.target),
  }),
  defineRoute({
    id: 'editClusterAdvancedSettings',
    method: 'PUT',
    path: `${PATH}/advancedSettings`,
    tag,
    summary: 'Replace the advanced settings of a cluster',
    description: 'What is absent or null falls back to its default.',
    target: clusterTarget,
    action: 'cluster.edit',
    body: ClusterAdvancedSettingsRequest,
    answer: { status: 200, body: ClusterAdvancedSettings },
    handler: (call) => editAdvancedSettings(call, call.target, call.body as Record<string, unknown>),
  }),
  defineRoute({
    id: 'getRoutingTable',
    method: 'GET',
    path: `${PATH}/routingTable`,
    tag,
    summary: 'Get the routing table of a cluster',
    target: clusterTarget,
    action: 'cluster.read',
    answer: { status: 200, body: RoutingTable },
    handler: (call) => toRoutingTable(call.target),
  }),
  defineRoute({
    id: 'editRoutingTable',
    method: 'PUT',
    path: `${PATH}/routingTable`,
    tag,
    summary: 'Replace the routing table of a cluster',
    target: clusterTarget,
    action: 'cluster.edit',
    body: RoutingTableRequest,
    answer: { status: 200, body: RoutingTable },
    handler: (call) => editRoutingTable(call, call.target, call.body.routes),
  }),
  defineRoute({
    id: 'getOrganizationCloudProviderInfo',
    method: 'GET',
    path: `${PATH}/cloudProviderInfo`,
    tag,
    summary: 'Tell with which credentials a cluster is run',
    target: clusterTarget,
    action: 'cluster.read',
    answer: { status: 200, body: ClusterCloudProviderInfo },
    handler: (call) => toCloudProviderInfo(call.target),
  }),
  defineRoute({
    id: 'specifyClusterCloudProviderInfo',
    method: 'POST',
    path: `${PATH}/cloudProviderInfo`,
    tag,
    summary: 'Say with which credentials a cluster is run',
    target: clusterTarget,
    action: 'cluster.edit',
    body: ClusterCloudProviderInfo,
    answer: { status: 201, body: ClusterCloudProviderInfo },
    handler: (call) => specifyCloudProviderInfo(call, needs, call.target, call.body),
  }),
  defineRoute({
    id: 'getClusterDnsProvider',
    method: 'GET',
    path: '/cluster/{clusterId}/dnsProvider',
    tag,
    summary: 'Get who answers for the names of the services on a cluster',
    target: clusterTarget,
    action: 'cluster.read',
    answer: { status: 200, body: DnsProvider },
    handler: (call) => toDnsProvider(call, call.target),
  }),
  defineRoute({
    id: 'editClusterDnsProvider',
    method: 'PUT',
    path: '/cluster/{clusterId}/dnsProvider',
    tag,
    summary: 'Set who answers for the names of the services on a cluster',
    target: clusterTarget,
    action: 'cluster.edit',
    body: DnsProviderRequest,
    answer: { status: 200, body: DnsProvider },
    handler: (call) => editDnsProvider(call, call.target, call.body.dns_provider),
  }),
];
