import type { MachineRecords } from '#deployments/index.ts';
import { listClustersOfNode, noteReached } from '#resources/cluster/index.ts';

/** Records of the clusters of this machine, for the watcher of what should run. */
export const MACHINE_RECORDS: MachineRecords = { listClusters: listClustersOfNode, noteReached };
