import type { MachineRecords } from '#deployments/index.ts';
import { listWatchedClusters, noteReached } from '#resources/cluster/index.ts';

/** Records of the clusters that this machine watches, for the watcher of what should run. */
export const MACHINE_RECORDS: MachineRecords = { listClusters: listWatchedClusters, noteReached };
