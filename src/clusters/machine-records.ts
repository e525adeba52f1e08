import type { MachineRecords } from '#deployments/index.ts';
import { noteSeen } from '#platform/installation/nodes.ts';
import { listWatchedClusters, noteReached } from '#resources/cluster/index.ts';

/** Records of this machine and of the clusters that it watches, for the watcher of what should run. */
export const MACHINE_RECORDS: MachineRecords = { noteSeen, listClusters: listWatchedClusters, noteReached };
