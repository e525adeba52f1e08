import type Docker from 'dockerode';
import type {
  Handle,
  InstanceEndpoints,
  InstanceMetrics,
  InstanceObservation,
  Observation,
} from '#runtimes/runtime.ts';
import { upstreamOf } from './container-config.ts';
import { unless } from './errors.ts';
import { listInstances } from './instances.ts';
import type { Instance } from './instances.ts';
import type { DockerNode } from './node.ts';
import { checkInstance, readinessOf } from './readiness.ts';
import { releaseFrom } from './release.ts';
import type { Release } from './release.ts';
import { listRunEnds, timeOf } from './run-ends.ts';

/** Maximum duration of a readiness check, in seconds: watchers ask often. */
const LOOK_SECONDS = 2;

/** Returns the state of a service's instances. Costs a list, an inspection per instance and one network check each; nothing is executed. */
export async function observeService(node: DockerNode, handle: Handle): Promise<Observation> {
  const release = releaseFrom(handle);
  const instances = await listInstances(node, handle.identity);
  // Candidates of a deployment under way or given up are not part of what serves.
  const counted = instances.filter((one) => one.named || one.generation === handle.identity.generation);
  const seen = await Promise.all(counted.map((instance) => view(node, instance, release)));
  const serving = counted.filter((_, index) => seen[index]!.state === 'ready');
  return { ...judge(release, seen), generation: serving.at(-1)?.generation ?? null, instances: seen };
}

/** Returns the addresses of each serving instance's ports; on a remote engine these are the published ports. */
export async function endpointsOfService(node: DockerNode, handle: Handle): Promise<InstanceEndpoints[]> {
  const ports = releaseFrom(handle).ports.filter(({ protocol }) => protocol !== 'UDP');
  const instances = await listInstances(node, handle.identity);
  const serving = instances.filter((one) => one.state.Running && !one.state.Restarting && one.named);
  return serving.map(({ name, endpoints }) => ({
    instance: name,
    ports: ports.flatMap(({ internalPort }) => {
      const reached = upstreamOf(endpoints, internalPort);
      return reached ? [{ internalPort, ...reached }] : [];
    }),
  }));
}

/** Returns the overall state, with a sentence if something is wrong. */
export function judge(
  release: Pick<Release, 'wanted'>,
  instances: InstanceObservation[],
): Pick<Observation, 'state' | 'message'> {
  if (instances.length === 0) return { state: release.wanted === 0 ? 'stopped' : 'absent', message: '' };
  if (instances.every((one) => one.state === 'stopped')) return { state: 'stopped', message: '' };
  const ready = instances.filter((one) => one.state === 'ready').length;
  if (ready >= Math.max(release.wanted, 1)) return { state: 'running', message: '' };
  const ended = instances.find((one) => one.lastExit && one.state !== 'ready');
  const why = ended ? ` ${ended.name} ended: ${ended.lastExit!.reason}.` : '';
  const failed = ready === 0 && instances.every((one) => one.state === 'failed' || one.state === 'restarting');
  return { state: failed ? 'failed' : 'partial', message: `${ready} of ${release.wanted} instances are ready.${why}` };
}

async function view(node: DockerNode, instance: Instance, release: Release): Promise<InstanceObservation> {
  return {
    name: instance.name,
    state: await stateOf(node, instance, release),
    restarts: instance.restarts + (instance.replaced?.times ?? 0),
    startedAt: timeOf(instance.state.StartedAt),
    lastExit: await lastExit(node, instance),
  };
}

async function stateOf(node: DockerNode, instance: Instance, release: Release): Promise<InstanceObservation['state']> {
  const { state } = instance;
  if (state.Restarting) return 'restarting';
  if (state.Status === 'created') return 'starting';
  if (state.Dead) return 'failed';
  if (!state.Running || state.Paused) return 'stopped';
  if (!instance.named) return 'starting';
  return (await isReady(node, instance, release)) ? 'ready' : 'running';
}

async function isReady(node: DockerNode, instance: Instance, release: Release): Promise<boolean> {
  const probes = readinessOf(release).filter((probe) => probe.check.type !== 'exec');
  const results = await Promise.all(
    probes.map((probe) =>
      checkInstance(node.engine, instance, probe.check, Math.min(probe.timeoutSeconds, LOOK_SECONDS)),
    ),
  );
  return results.every((why) => why === null);
}

async function lastExit(node: DockerNode, instance: Instance): Promise<InstanceObservation['lastExit']> {
  const { state } = instance;
  const at = timeOf(state.FinishedAt);
  if (at === null) return instance.replaced?.exit ?? null;
  // The state of a restarted container lacks its last exit; the engine's recent events have it.
  const code = state.Running && !state.Restarting ? await exitCodeAt(node, instance.id, at) : state.ExitCode;
  return { ...explainExit(code, state.OOMKilled), at };
}

/** Explains an exit status: above 128 it names the signal that ended the process. */
export function explainExit(code: number | null, outOfMemory: boolean) {
  if (outOfMemory) return { code, signal: null, reason: 'it needed more memory than its limit' };
  if (code === null) return { code, signal: null, reason: 'its exit status is not known any more' };
  const signal = SIGNALS[code - 128] ?? null;
  return { code, signal, reason: signal ? `signal ${signal}` : `status ${code}` };
}

const SIGNALS: Record<number, string> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  6: 'SIGABRT',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  13: 'SIGPIPE',
  15: 'SIGTERM',
};

async function exitCodeAt(node: DockerNode, id: string, at: string): Promise<number | null> {
  const seconds = Math.floor(Date.parse(at) / 1000);
  const ends = await listRunEnds(node, id, { since: seconds - 2, until: seconds + 2 });
  return ends.at(-1)?.exitCode ?? null;
}

/** Measures CPU and memory of each running instance over the last second. */
export async function measureService(node: DockerNode, handle: Handle): Promise<InstanceMetrics[]> {
  const instances = (await listInstances(node, handle.identity)).filter((one) => one.state.Running);
  const measured = await Promise.all(
    instances.map(async (instance) => {
      const stats = await unless([404, 409], node.engine.getContainer(instance.id).stats({ stream: false }));
      return stats ? { ...metricsOf(instance.name, stats), ...limitsOf(instance) } : null;
    }),
  );
  return measured.filter((one) => one !== null);
}

/** Returns the limits of an instance and its start time. */
function limitsOf({ inspected, state, restarts }: Instance) {
  const { NanoCpus: nanoCpus, Memory: memory } = inspected.HostConfig;
  return {
    cpuLimitMilli: Math.round((nanoCpus ?? 0) / 1e6),
    memoryLimitBytes: memory ?? 0,
    startedAt: timeOf(state.StartedAt),
    restarts,
  };
}

/** Computes metrics; memory excludes the file cache, which the kernel reclaims when needed. */
export function metricsOf(
  instance: string,
  stats: Docker.ContainerStats,
): Pick<InstanceMetrics, 'instance' | 'cpuMilli' | 'cpuMs' | 'memoryBytes' | 'at'> {
  const used = stats.cpu_stats.cpu_usage.total_usage - stats.precpu_stats.cpu_usage.total_usage;
  const elapsed = Date.parse(stats.read) - Date.parse(stats.preread);
  const memory = stats.memory_stats;
  const details = memory.stats as unknown as Record<string, number> | undefined;
  const cache = details?.['total_inactive_file'] ?? details?.['inactive_file'] ?? 0;
  return {
    instance,
    // Nanoseconds of CPU per millisecond are microseconds per millisecond × 1000: one whole CPU is 1000 milli-CPU.
    cpuMilli: elapsed > 0 ? Math.max(Math.round(used / elapsed / 1000), 0) : 0,
    cpuMs: stats.cpu_stats.cpu_usage.total_usage / 1e6,
    memoryBytes: Math.max((memory.usage ?? 0) - cache, 0),
    at: new Date(stats.read).toISOString(),
  };
}
