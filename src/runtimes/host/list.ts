import type { HostParts } from '#runtimes/host/host-parts.ts';
import type { Instances } from '#runtimes/host/instances.ts';
import type { FoundWorkload } from '#runtimes/runtime.ts';

/** Lists the installation's workloads from its folders: releases hold their identities, and shims tell whether they run. */
export function listWorkloads({ layout, releases }: HostParts, instances: Instances): FoundWorkload[] {
  return layout.services().flatMap((serviceId) => {
    const there = releases.generations(serviceId);
    const generation = releases.current(serviceId)?.generation ?? there.at(-1);
    const spec = generation === undefined ? null : releases.read(serviceId, generation);
    if (!spec) return [];
    const alive = layout.instances(serviceId).some((at) => instances.shim(at)?.alive);
    return [{ identity: spec.identity, displayName: spec.displayName, state: alive ? 'running' : 'stopped' }];
  });
}
