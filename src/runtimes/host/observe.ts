import type { HostParts } from '#runtimes/host/host-parts.ts';
import type { Instances } from '#runtimes/host/instances.ts';
import { instanceName, type InstanceKey } from '#runtimes/host/layout.ts';
import type { Readiness } from '#runtimes/host/readiness.ts';
import type { InstanceObservation, Observation, WorkloadSpec } from '#runtimes/runtime.ts';

/** Returns the state of a service, read from the state files of its shims. */
export async function observeService(
  parts: HostParts,
  instances: Instances,
  readiness: Readiness,
  serviceId: string,
): Promise<Observation> {
  const current = parts.releases.current(serviceId);
  if (!current) {
    const candidates = parts.layout.instances(serviceId).length > 0;
    const message = candidates ? 'The first release is not ready yet.' : '';
    return { state: candidates ? 'partial' : 'absent', generation: null, instances: [], message };
  }
  const { generation } = current;
  const spec = parts.releases.read(serviceId, generation);
  if (!spec) return { state: 'absent', generation: null, instances: [], message: '' };
  const keys = current.instances.map((n) => ({ serviceId, generation, n }));
  const seen = await Promise.all(keys.map((at) => observeInstance(instances, readiness, at, spec, current.stopped)));
  if (current.stopped || keys.length === 0) return { state: 'stopped', generation, instances: seen, message: '' };
  const rebooted = keys.every((at) => (instances.shim(at)?.state.shim.bootId ?? parts.bootId) !== parts.bootId);
  if (rebooted)
    return {
      state: 'stopped',
      generation: null,
      instances: seen,
      message: 'The machine was restarted since; deploy again.',
    };
  // Another program has removed it: no start of an instance can succeed until the service is deployed again.
  const isCut = keys.every(
    (at) => instances.shim(at)?.state.state === 'backoff' && !parts.network.has(instanceName(at)),
  );
  if (isCut)
    return {
      state: 'stopped',
      generation: null,
      instances: seen,
      message: 'The network of its instances is gone; deploy again.',
    };
  return { ...judge(seen, spec), generation, instances: seen };
}

function judge(seen: InstanceObservation[], spec: WorkloadSpec): Pick<Observation, 'state' | 'message'> {
  const wanted = spec.instances.min;
  const ready = seen.filter((instance) => instance.state === 'ready').length;
  if (ready >= wanted) return { state: 'running', message: '' };
  const ends = [...new Set(seen.map((instance) => instance.lastExit?.reason ?? ''))].filter((reason) => reason !== '');
  const why = ends.length ? ` Last: ${ends.join('; ')}.` : '';
  const dead = ready === 0 && seen.every((instance) => instance.state === 'failed' || instance.state === 'restarting');
  return { state: dead ? 'failed' : 'partial', message: `${ready} of ${wanted} instances are ready.${why}` };
}

async function observeInstance(
  instances: Instances,
  readiness: Readiness,
  at: InstanceKey,
  spec: WorkloadSpec,
  stopped: boolean,
): Promise<InstanceObservation> {
  const shim = instances.shim(at);
  const state = stopped ? 'stopped' : await stateOf(instances, readiness, at, spec);
  const replaced = instances.record(at)?.replaced;
  return {
    name: instanceName(at),
    state,
    restarts: (shim?.state.restarts ?? 0) + (replaced?.times ?? 0),
    startedAt: shim?.state.startedAt ?? null,
    lastExit: shim?.state.lastExit ?? replaced?.exit ?? null,
  };
}

async function stateOf(
  instances: Instances,
  readiness: Readiness,
  at: InstanceKey,
  spec: WorkloadSpec,
): Promise<InstanceObservation['state']> {
  const shim = instances.shim(at);
  if (!shim?.alive) return 'failed';
  if (shim.state.state === 'backoff') return 'restarting';
  if (!shim.running) return 'starting';
  // Ready since its present process started, or by a single check now (watchers call this every few seconds).
  const readyAt = instances.record(at)?.readyAt ?? null;
  if (readyAt !== null && readyAt >= shim.state.startedAt!) return 'ready';
  return (await readiness.once(at, spec)) ? 'ready' : 'running';
}
