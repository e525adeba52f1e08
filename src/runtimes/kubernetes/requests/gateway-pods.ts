import { RuntimeError } from '#runtimes/runtime.ts';
import { anySignal } from '#kernel/lease-signal.ts';
import { list, pathOf, type Cluster } from '../cluster.ts';
import { ApiError, asRuntimeError } from '../errors.ts';
import type { Pod } from '../kinds.ts';
import { isOfEnvironment } from '../labels.ts';
import type { GatewayProgram } from './gateway-program.ts';
import { readSamples, type MetricSample } from './prometheus-text.ts';
import { emptyTotals, type Reading } from './totals.ts';

/** Pods of a gateway that are read at most. */
const MOST_PODS = 64;
/** Milliseconds for the metrics of one pod. */
export const READ_MS = 10_000;
const STARTED_AT = 'process_start_time_seconds';

/**
 * Returns the running pods of a gateway. Those in namespaces of environments are left out: they belong to users, and would tell what these like.
 */
export async function listGatewayPods(cluster: Cluster, { name, selector }: GatewayProgram): Promise<Pod[]> {
  const pods = (await list<Pod>(cluster, 'Pod', undefined, selector)).filter(
    ({ metadata, status }) => status?.phase === 'Running' && !isOfEnvironment(metadata.namespace!),
  );
  if (pods.length > MOST_PODS)
    throw new RuntimeError(
      'failed',
      `${pods.length} pods of ${name} are more than the ${MOST_PODS} whose requests can be counted.`,
    );
  return pods;
}

/** Reads what a pod has counted for the named backends. Throws RuntimeError with the pod, its port and the reason. */
export async function readGatewayPod(
  { connection }: Cluster,
  program: GatewayProgram,
  pod: Pod,
  names: ReadonlySet<string>,
  { signal: outer, ms }: { signal: AbortSignal; ms: number },
): Promise<Reading> {
  const { namespace, name } = pod.metadata;
  const { port, path } = program.metricsOf(pod);
  const signal = anySignal([outer, AbortSignal.timeout(ms)]);
  try {
    const from = `${pathOf('Pod', namespace, `${name}:${port}`)}/proxy${path}`;
    const stream = await connection.stream(from, { accept: 'text/plain', signal });
    return await gather(readSamples(stream, [STARTED_AT, program.mark, ...program.prefixes]), program, names);
  } catch (error) {
    if (outer.aborted) throw error;
    throw new RuntimeError(
      error instanceof ApiError && error.status === 403 ? 'refused' : 'unreachable',
      `The metrics of the pod ${namespace}/${name} cannot be read at its port ${port}: ${signal.aborted ? `there was no answer within ${ms / 1000} s.` : reasonOf(error)}`,
      error,
    );
  }
}

const reasonOf = (error: unknown): string =>
  error instanceof ApiError ? asRuntimeError(error).message : `${(error as Error).message}.`;

async function gather(
  samples: AsyncIterable<MetricSample>,
  program: GatewayProgram,
  names: ReadonlySet<string>,
): Promise<Reading> {
  const reading: Reading = { startedAt: null, names, backends: new Map() };
  let isMarked = false;
  for await (const sample of samples) {
    isMarked ||= sample.name === program.mark;
    if (sample.name === STARTED_AT) reading.startedAt = sample.value;
    const name = program.backendOf(sample);
    if (name === undefined || !names.has(name)) continue;
    const totals = reading.backends.get(name) ?? emptyTotals();
    program.add(totals, sample);
    reading.backends.set(name, totals);
  }
  if (!isMarked) throw new Error(`it answers no metrics of ${program.name}`);
  return reading;
}
