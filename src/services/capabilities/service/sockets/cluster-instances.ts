import { badRequest } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import type { ClusterInstance, ClusterTarget } from '#resources/cluster/index.ts';
import type { ServiceSocketNeeds } from '#services/capabilities/service/sockets/needs.ts';
import { listDeployedOn } from '#services/capabilities/service/sockets/queries.ts';
import { inTime, toAppError } from '#services/capabilities/service/sockets/runtime.ts';
import type { Handle, Runtime, RuntimeNode } from '#runtimes/runtime.ts';

/** Services that are measured at the same time. */
const AT_A_TIME = 8;

/** Returns the nodes of a cluster that is no machine of this installation. Throws 400 where the runtime knows of none. */
export async function listClusterNodes(
  { runtimeOf }: Pick<ServiceSocketNeeds, 'runtimeOf'>,
  { id, name, runtime: kind, node_id: nodeId }: ClusterTarget,
): Promise<RuntimeNode[]> {
  try {
    const runtime = await runtimeOf({ id, runtime: kind, nodeId });
    if (!runtime.nodes)
      throw badRequest(
        `Cluster ${name} on the ${kind} runtime is on no machine of this installation, and tells of none.`,
      );
    return await inTime(runtime.nodes());
  } catch (error) {
    throw toAppError(error);
  }
}

/** Measures the instances of every service that runs on a cluster, with where each stands. */
export async function measureCluster(
  { db }: Pick<Context, 'db'>,
  { runtimeOf }: Pick<ServiceSocketNeeds, 'runtimeOf'>,
  cluster: ClusterTarget,
): Promise<ClusterInstance[]> {
  const services = await listDeployedOn(db, cluster, cluster.id);
  const waiting = services.entries();
  const measured: ClusterInstance[][] = services.map(() => []);
  try {
    const runtime = await runtimeOf({ id: cluster.id, runtime: cluster.runtime, nodeId: cluster.node_id });
    const work = async () => {
      for (const [index, service] of waiting) measured[index] = await measure(runtime, service);
    };
    await inTime(Promise.all(Array.from({ length: AT_A_TIME }, work)));
  } catch (error) {
    throw toAppError(error);
  }
  return measured.flat();
}

type Deployed = Awaited<ReturnType<typeof listDeployedOn>>[number];

async function measure(runtime: Runtime, service: Deployed): Promise<ClusterInstance[]> {
  const handle = service.handle as unknown as Handle;
  // What another kind of runtime made has no instances here.
  if (!runtime.metrics || handle.runtime !== runtime.name) return [];
  const { handle: _handle, ...of } = service;
  return (await runtime.metrics(handle)).map((metrics) => ({ ...of, ...metrics }));
}
