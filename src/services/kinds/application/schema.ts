import { DateTime, Name, named, Nullable, OneOf, Reference, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { SERVICE_KINDS } from '#services/holder.ts';
import { GitRepository, GitRepositoryRequest } from '#services/parts/git.ts';
import { Port, PortRequest } from '#services/parts/ports.ts';
import { Healthcheck } from '#services/parts/probes.ts';
import { Storage, StorageRequest } from '#services/parts/storage.ts';
import { AnnotationsGroup, Autoscaling, AutoscalingRequest, LabelsGroup } from '#services/parts/groups.ts';

const Cpu = Type.Integer({ minimum: 10, maximum: 1_000_000, description: 'Milli-CPU, a whole number.' });
const Memory = Type.Integer({ minimum: 1, maximum: 10_000_000, description: 'MiB, a whole number.' });
const Instances = Type.Integer({ minimum: 0, maximum: 1000 });
const RelativePath = Type.String({ minLength: 1, maxLength: 1000 });

const own = {
  build_mode: Type.Optional(OneOf(['DOCKER'], { default: 'DOCKER' })),
  dockerfile_path: Type.Optional(Nullable(RelativePath)),
  cpu: Type.Optional(Cpu),
  memory: Type.Optional(Memory),
  gpu: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000 })),
  ephemeral_storage_in_gib: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_536 })),
  min_running_instances: Type.Optional(Instances),
  max_running_instances: Type.Optional(Instances),
  healthchecks: Type.Optional(Healthcheck),
  auto_preview: Type.Optional(Type.Boolean()),
  arguments: Type.Optional(Type.Array(Type.String({ maxLength: 10_000 }), { maxItems: 1000 })),
  entrypoint: Type.Optional(Type.String({ maxLength: 10_000 })),
  auto_deploy: Type.Optional(Nullable(Type.Boolean())),
  annotations_groups: Type.Optional(Type.Array(Reference, { maxItems: 100 })),
  labels_groups: Type.Optional(Type.Array(Reference, { maxItems: 100 })),
  icon_uri: Type.Optional(Type.String({ minLength: 1, maxLength: 2000 })),
  docker_target_build_stage: Type.Optional(Nullable(Type.String({ maxLength: 255 }))),
  cpu_architecture: Type.Optional(Nullable(OneOf(['AMD64', 'ARM64']))),
  storage: Type.Optional(Type.Array(StorageRequest, { maxItems: 100 })),
  ports: Type.Optional(Type.Array(PortRequest, { maxItems: 100 })),
  autoscaling: Type.Optional(AutoscalingRequest),
};

export const ApplicationRequest = named(
  'ApplicationRequest',
  Type.Object({
    name: Name,
    description: Type.Optional(Nullable(Type.String({ maxLength: 2000 }))),
    git_repository: GitRepositoryRequest,
    ...own,
  }),
);

export const ApplicationEditRequest = named(
  'ApplicationEditRequest',
  Type.Object({
    name: Type.Optional(Name),
    description: Type.Optional(Nullable(Type.String({ maxLength: 2000 }))),
    git_repository: Type.Optional(GitRepositoryRequest),
    ...own,
  }),
);
export type ApplicationInput = Static<typeof ApplicationEditRequest>;

export const Application = named(
  'Application',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    description: Type.String(),
    environment: Reference,
    icon_uri: Type.String(),
    service_type: OneOf(SERVICE_KINDS),
    git_repository: GitRepository,
    build_mode: OneOf(['DOCKER']),
    dockerfile_path: Nullable(Type.String()),
    cpu: Type.Integer(),
    memory: Type.Integer(),
    gpu: Type.Integer(),
    maximum_cpu: Type.Integer(),
    maximum_memory: Type.Integer(),
    maximun_gpu: Type.Integer(),
    ephemeral_storage_in_gib: Type.Optional(Type.Integer()),
    cpu_architecture: Nullable(OneOf(['AMD64', 'ARM64'])),
    min_running_instances: Type.Integer(),
    max_running_instances: Type.Integer(),
    healthchecks: Healthcheck,
    auto_preview: Type.Boolean(),
    ports: Type.Array(Port),
    storage: Type.Array(Storage),
    arguments: Type.Array(Type.String()),
    entrypoint: Type.Optional(Type.String()),
    auto_deploy: Type.Boolean(),
    annotations_groups: Type.Array(AnnotationsGroup),
    labels_groups: Type.Array(LabelsGroup),
    docker_target_build_stage: Nullable(Type.String()),
    autoscaling: Type.Optional(Autoscaling),
  }),
);
