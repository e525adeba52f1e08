export { placeRefusal, refuseCluster } from '#resources/cluster/allowed.ts';
export { clusterRoutes } from '#resources/cluster/routes/index.ts';
export type {
  ClusterInstance,
  ClusterNeeds,
  ClusterSocketNeeds,
  MetricSeries,
  NodeMetrics,
  NodeUsage,
  SeriesRequest,
} from '#resources/cluster/needs.ts';
export { clusterTarget, type ClusterTarget } from '#resources/cluster/target.ts';
export { insertCluster, type NewClusterInput } from '#resources/cluster/service.ts';
export { kubernetesOf } from '#resources/cluster/view.ts';
export { openSecretManagerAccess, type OpenAccess } from '#resources/cluster/accesses.ts';
export { CLUSTER_WORK } from '#resources/cluster/channels.ts';
export * from '#resources/cluster/work/door.ts';
export { listClustersWithCredentials, renameCredentialsOfClusters } from '#resources/cluster/queries.ts';
export { CLOUDS, CloudVendor } from '#resources/cluster/schema/vendors.ts';
export { Feature } from '#resources/cluster/schema/features.ts';
export { clusterSockets } from '#resources/cluster/sockets.ts';
export {
  connectionVersion,
  findRegistryOfCluster,
  noteConnectionEnd,
  openConnection,
} from '#resources/cluster/connection.ts';
export { forgetReached, listWatchedClusters, noteReached } from '#resources/cluster/reached.ts';
