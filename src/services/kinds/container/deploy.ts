import type {
  DeployableKind,
  LastRelease,
  PlannedService,
  ResolvedService,
  ServiceSnapshot,
} from '#deployments/index.ts';
import type { ContainerSpec } from '#services/kinds/container/spec.ts';
import { rolloutOf } from '#services/workload/long-running.ts';
import { toWorkload } from '#services/workload/workload.ts';

/** Deployment of a container: its tag is resolved to a digest, which is applied. */
export const containerDeployment: DeployableKind<ContainerSpec> = {
  source: (service) => {
    const { registry_id: registryId, image_name: name, tag } = service.spec;
    return { type: 'image', registryId, name, tag };
  },
  plan: (service, action, resolved, last): PlannedService => ({
    serviceId: service.serviceId,
    name: service.name,
    kind: service.kind,
    steps: ['DEPLOYMENT'],
    reason: action === 'DEPLOY' ? whyApplied(service, resolved, last) : `${action.toLowerCase()} was requested`,
    buildKey: null,
    image: action === 'DEPLOY' ? (resolved.image ?? null) : null,
    rollout: rolloutOf(service.spec, action),
  }),
  volumes: ({ spec }) => spec.storage.map(({ id, size }) => ({ id, sizeGib: size })),
  deployable: (service, identity, image, variables, options) =>
    toWorkload(service, service.spec, identity, image, variables, options),
};

function whyApplied(
  service: ServiceSnapshot<ContainerSpec>,
  { image }: ResolvedService,
  last: LastRelease | null,
): string {
  const { tag } = service.spec;
  if (!last?.image) return 'it was never deployed';
  if (last.image === image) return `the image is that of the last release (${tag})`;
  return `${tag} is another image than that of the last release`;
}
