import type { Handle } from '#runtimes/runtime.ts';
import type { Cluster } from './cluster.ts';
import { isChart } from './helm/handle.ts';
import { podsOfChart } from './helm/observe.ts';
import type { Pod } from './kinds.ts';
import { listPods } from './pods.ts';

/** Returns the pods of a service, whatever it deploys. */
export const podsOf = (cluster: Cluster, handle: Handle): Promise<Pod[]> =>
  isChart(handle) ? podsOfChart(cluster, handle) : listPods(cluster, handle.identity);
