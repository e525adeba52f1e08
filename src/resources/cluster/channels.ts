/** Channel on which workers are told of new work on a cluster (platform/database/notify.ts); the payload is its id. */
export const CLUSTER_WORK = 'quarterdeck_cluster_work';
