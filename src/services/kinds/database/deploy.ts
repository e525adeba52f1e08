import type { Configured, DeclaredVolume, DeployableKind, KindHooks, PlannedService } from '#deployments/index.ts';
import { PUBLIC_REGISTRY } from '#deployments/index.ts';
import { openPassword } from '#services/kinds/database/access.ts';
import {
  ENGINES,
  isMachineImage,
  isOlderThanImages,
  readinessProbe,
  seriesOf,
  type Edition,
} from '#services/kinds/database/engines/index.ts';
import type { DatabaseSpec } from '#services/kinds/database/spec.ts';
import type { RuntimeFeature } from '#runtimes/runtime.ts';

/** Time until a server is ready, in seconds: after a crash it replays its log first. */
const READY_TIMEOUT_SECONDS = 600;
/** Time for a server to end, in seconds: it ends open transactions and writes everything to the disk. */
const GRACE_SECONDS = 60;

const volumes = ({ spec }: Configured<DatabaseSpec>): DeclaredVolume[] => [
  { id: spec.volume_id, sizeGib: spec.storage },
];

/** Returns the edition with which the server of a configuration is started. */
export const editionOfSpec = ({ type, image }: Pick<DatabaseSpec, 'type' | 'image'>): Edition =>
  isMachineImage(image) ? ENGINES[type].onMachine! : ENGINES[type].inImage;

/** Returns the runtime features that a configuration needs. */
export const databaseNeeds = ({ type, version, image, mode }: DatabaseSpec): RuntimeFeature[] => [
  ...(isMachineImage(image) ? (['machine-programs'] as const) : (['registry-images'] as const)),
  ...(!isMachineImage(image) && isOlderThanImages(type, version) ? (['older-databases'] as const) : []),
  ...(mode === 'MANAGED' ? (['database-backups'] as const) : []),
];

/** Deployment of a database: its image is resolved, its server recreated on the same volume. */
export const databaseDeployment: DeployableKind<DatabaseSpec> = {
  source: (service) => {
    const { image } = service.spec;
    if (isMachineImage(image)) return null;
    const at = image.lastIndexOf(':');
    return { type: 'image', registryId: PUBLIC_REGISTRY, name: image.slice(0, at), tag: image.slice(at + 1) };
  },
  plan: (service, action, resolved, last): PlannedService => {
    const spec = service.spec;
    const base = { serviceId: service.serviceId, name: service.name, kind: service.kind, buildKey: null };
    if (action !== 'DEPLOY')
      return {
        ...base,
        rollout: action === 'RESTART' ? 'RECREATE' : 'NONE',
        steps: ['DEPLOYMENT'],
        reason: `${action.toLowerCase()} was requested`,
        image: null,
      };
    const image = isMachineImage(spec.image) ? spec.image : (resolved.image ?? null);
    return {
      ...base,
      rollout: 'RECREATE',
      steps: ['DEPLOYMENT'],
      reason: last?.image === image ? 'the server is that of the last release' : `${spec.type} ${spec.version}`,
      image,
    };
  },
  volumes,
  deployable: (service, identity, image, _variables, { registry, opened }) => {
    const spec = service.spec;
    const { access } = spec;
    const edition = editionOfSpec(spec);
    const credentials = { login: access.login, password: opened['password']!, name: access.name };
    const start = edition.start(seriesOf(spec.type, spec.version), credentials);
    return {
      type: 'workload',
      identity,
      displayName: service.name,
      hostname: service.hostname,
      image,
      registry,
      entrypoint: [],
      arguments: start.arguments,
      environment: start.environment,
      files: start.files,
      ports: [
        {
          id: spec.volume_id,
          name: 'database',
          internalPort: access.port,
          externalPort: access.external_port ?? access.port,
          protocol: 'TCP',
          publiclyAccessible: access.external_port !== null,
          isDefault: true,
        },
      ],
      readiness: readinessProbe(start.ready),
      liveness: null,
      resources: { cpuMilli: spec.cpu, memoryMib: spec.memory },
      instances: { min: 1, max: 1 },
      storage: volumes(service).map((volume) => ({ ...volume, mountPath: start.mountPath })),
      routes: [],
      labels: service.labels ?? {},
      readyTimeoutSeconds: READY_TIMEOUT_SECONDS,
      gracePeriodSeconds: GRACE_SECONDS,
      secrets: [credentials.password],
    };
  },
};

/** Decrypts the password of a database, which its configuration contains sealed. */
export const openDatabase: NonNullable<KindHooks<DatabaseSpec>['open']> = async (
  context,
  service,
  { organizationId },
) => {
  const password = await openPassword(context, organizationId, service.serviceId, service.spec.access);
  return { values: { password }, secrets: [password] };
};
