import { setTimeout as sleep } from 'node:timers/promises';
import type { RuntimeContext, WorkloadIdentity } from '#runtimes/runtime.ts';
import { list, type Cluster } from './cluster.ts';
import type { EndpointSlice } from './kinds.ts';
import { namespaceOf } from './labels.ts';
import { Patience } from './patience.ts';

/** Milliseconds that the Service may take to lead to pods that are ready, and between two looks. */
const REACHED_MS = 10_000;
const LOOK_MS = 200;

/**
 * Waits until the Service of a release leads to a pod that is ready: the cluster makes that so a moment after the rollout. A Service that
 * takes longer than ten seconds is told of and not waited for.
 */
export async function untilReached(
  cluster: Cluster,
  identity: WorkloadIdentity,
  name: string,
  { log, signal }: RuntimeContext,
): Promise<void> {
  const patience = new Patience(() => undefined);
  const look = () => isReached(cluster, namespaceOf(identity), name);
  for (const end = Date.now() + REACHED_MS; Date.now() < end; await sleep(LOOK_MS))
    // The release is rolled out: a cancel comes too late.
    if (signal.aborted || (await patience.ask(look))) return;
  log(`The Service ${name} leads to no pod yet.`);
}

async function isReached(cluster: Cluster, namespace: string, name: string): Promise<boolean> {
  const slices = await list<EndpointSlice>(cluster, 'EndpointSlice', namespace, `kubernetes.io/service-name=${name}`);
  return slices.flatMap(({ endpoints }) => endpoints ?? []).some(({ conditions }) => conditions.ready !== false);
}
