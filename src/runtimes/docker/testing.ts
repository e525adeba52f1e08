import type Docker from 'dockerode';
import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import { LABEL } from './labels.ts';

/** For tests: names of everything in the engine that carries a service's label, and of its environment's network. */
export async function leftoversOf(engine: Docker, identity: WorkloadIdentity): Promise<string[]> {
  const service = { label: [`${LABEL.service}=${identity.serviceId}`] };
  const environment = { label: [`${LABEL.environment}=${identity.environmentId}`] };
  const [containers, volumes, images, networks] = await Promise.all([
    engine.listContainers({ all: true, filters: service }),
    engine.listVolumes({ filters: service as never }),
    engine.listImages({ filters: JSON.stringify(service) }),
    engine.listNetworks({ filters: environment as never }),
  ]);
  return [
    ...containers.map((container) => container.Names[0] ?? container.Id),
    ...(volumes.Volumes ?? []).map((volume) => volume.Name),
    ...images.map((image) => image.RepoTags?.[0] ?? image.Id),
    ...networks.map((network) => network.Name),
  ];
}
