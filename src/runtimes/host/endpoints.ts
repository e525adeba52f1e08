import type { HostParts } from '#runtimes/host/host-parts.ts';
import type { Instances } from '#runtimes/host/instances.ts';
import { instanceName } from '#runtimes/host/layout.ts';
import type { InstanceEndpoints } from '#runtimes/runtime.ts';

/** Returns the addresses of the ports of each instance that serves (`Runtime.endpoints`). */
export function endpointsOf({ releases }: HostParts, instances: Instances, serviceId: string): InstanceEndpoints[] {
  const current = releases.current(serviceId);
  const spec = current && releases.read(serviceId, current.generation);
  if (!spec) return [];
  const keys = current.instances.map((n) => ({ serviceId, generation: current.generation, n }));
  return keys.flatMap((at) => {
    const attachment = instances.shim(at)?.running ? instances.record(at)?.attachment : undefined;
    if (!attachment) return [];
    const ports = spec.ports
      .filter(({ protocol }) => protocol !== 'UDP')
      .map(({ internalPort }) => ({
        internalPort,
        address: attachment.address,
        port: attachment.ports[internalPort] ?? internalPort,
      }));
    return [{ instance: instanceName(at), ports }];
  });
}
