import { RuntimeError } from '#runtimes/runtime.ts';
import type { Cluster } from '../cluster.ts';
import { findControllers } from './controllers.ts';
import { listGatewayPods, readGatewayPod } from './gateway-pods.ts';
import type { GatewayProgram } from './gateway-program.ts';
import { programsOf } from './programs.ts';

/** Milliseconds for the metrics of a pod: a check of the cluster waits for them. */
const LOOK_MS = 3_000;

/** Explains why requests are not counted in a cluster whose gateway could tell them; empty if they are, or its gateway is another. */
export async function uncountedReasons(cluster: Cluster): Promise<string[]> {
  try {
    const programs = programsOf(await findControllers(cluster));
    const reasons = await Promise.all(programs.map((program) => reasonOf(cluster, program)));
    return reasons.filter((reason) => reason !== null);
  } catch (error) {
    // The check names the rights that the account lacks.
    if (error instanceof RuntimeError && error.code === 'refused') return [];
    throw error;
  }
}

async function reasonOf(cluster: Cluster, program: GatewayProgram): Promise<string | null> {
  try {
    const [pod] = await listGatewayPods(cluster, program);
    if (!pod)
      return `Requests are not counted: no pod of ${program.name} runs with the label \`${program.selector}\` outside of environments.`;
    const { signal } = new AbortController();
    await readGatewayPod(cluster, program, pod, new Set(), { signal, ms: LOOK_MS });
    return null;
  } catch (error) {
    if (error instanceof RuntimeError && error.code !== 'refused') return `Requests are not counted: ${error.message}`;
    throw error;
  }
}
