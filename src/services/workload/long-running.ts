import type { Context } from '#platform/context.ts';
import { invalidField } from '#kernel/errors.ts';
import { Nullable, OneOf, Type, type Static } from '#platform/http/schema.ts';
import type { SpecPlace } from '#services/kind.ts';
import { commonInput } from '#services/service/common-fields.ts';
import {
  Autoscaling,
  AutoscalingRequest,
  checkAutoscaling,
  toAutoscaling,
  toAutoscalingView,
  type AutoscalingSpec,
} from '#services/workload/autoscaling.ts';
import { groupsAnswer, groupsRequest, toGroups, toGroupsView, type GroupsSpec } from '#services/workload/groups.ts';
import { Port, PortRequest, toPorts, type PortSpec } from '#services/ports/ports.ts';
import { publishPorts } from '#services/ports/published-ports.ts';
import { checkHealthchecks, Healthcheck, type HealthcheckInput } from '#services/workload/probes.ts';
import { Storage, StorageRequest, toStorage, type StorageSpec } from '#services/workload/storage.ts';
import type { ServiceRow } from '#services/service/queries.ts';

export const Cpu = Type.Integer({
  minimum: 10,
  maximum: 1_000_000,
  unit: 'milli-CPU, such as 500',
  description: 'Milli-CPU, a whole number.',
});
export const Memory = Type.Integer({
  minimum: 1,
  maximum: 10_000_000,
  unit: 'MiB, such as 512',
  description: 'MiB, a whole number.',
});
const Instances = Type.Integer({ minimum: 0, maximum: 1000 });
export const Arguments = Type.Array(Type.String({ maxLength: 10_000 }), { maxItems: 1000 });
export const Entrypoint = Type.String({
  maxLength: 10_000,
  description: 'Left out of a change it is cleared; empty, the entry point of the image is used.',
});
export const Architecture = OneOf(['AMD64', 'ARM64']);

/** Fields of bodies that create or edit long-running services. */
export const longRunningInput = {
  ...commonInput,
  cpu: Type.Optional(Cpu),
  memory: Type.Optional(Memory),
  gpu: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000 })),
  ephemeral_storage_in_gib: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_536 })),
  min_running_instances: Type.Optional(Instances),
  max_running_instances: Type.Optional(Instances),
  healthchecks: Type.Optional(Healthcheck),
  auto_preview: Type.Optional(Type.Boolean()),
  arguments: Type.Optional(Arguments),
  entrypoint: Type.Optional(Nullable(Entrypoint)),
  auto_deploy: Type.Optional(Nullable(Type.Boolean())),
  ...groupsRequest,
  cpu_architecture: Type.Optional(Nullable(Architecture)),
  storage: Type.Optional(Type.Array(StorageRequest, { maxItems: 100 })),
  ports: Type.Optional(Type.Array(PortRequest, { maxItems: 100 })),
  autoscaling: Type.Optional(Nullable(AutoscalingRequest)),
};
const Input = Type.Object(longRunningInput);
export type LongRunningInput = Static<typeof Input>;

/** Fields of answers of long-running services. */
export const longRunningAnswer = {
  cpu: Type.Integer(),
  memory: Type.Integer(),
  gpu: Type.Integer(),
  maximum_cpu: Type.Integer(),
  maximum_memory: Type.Integer(),
  ephemeral_storage_in_gib: Type.Optional(Type.Integer()),
  cpu_architecture: Nullable(Architecture),
  min_running_instances: Type.Integer(),
  max_running_instances: Type.Integer(),
  healthchecks: Healthcheck,
  auto_preview: Type.Boolean(),
  ports: Type.Array(Port),
  storage: Type.Array(Storage),
  arguments: Type.Array(Type.String()),
  entrypoint: Type.Optional(Type.String()),
  auto_deploy: Type.Boolean(),
  ...groupsAnswer,
  autoscaling: Type.Optional(Autoscaling),
};

/** Common part of the configurations of applications and containers. */
export interface LongRunningSpec extends GroupsSpec {
  /** Milli-CPU. */
  cpu: number;
  /** MiB. */
  memory: number;
  gpu: number;
  ephemeral_storage_in_gib?: number;
  cpu_architecture: 'AMD64' | 'ARM64' | null;
  min_running_instances: number;
  max_running_instances: number;
  healthchecks: HealthcheckInput;
  auto_preview: boolean;
  auto_deploy: boolean;
  ports: PortSpec[];
  storage: StorageSpec[];
  arguments: string[];
  entrypoint?: string;
  autoscaling?: AutoscalingSpec;
}

const FRESH: LongRunningSpec = {
  cpu: 500,
  memory: 512,
  gpu: 0,
  cpu_architecture: null,
  min_running_instances: 1,
  max_running_instances: 1,
  healthchecks: {},
  auto_preview: false,
  auto_deploy: false,
  ports: [],
  storage: [],
  arguments: [],
};

/** Makes the spec from a body: absent fields keep their value, or get the reference's default. Throws 400 that names the field. */
export async function toLongRunningSpec(
  context: Context,
  place: SpecPlace,
  input: LongRunningInput,
  present: LongRunningSpec | null,
): Promise<LongRunningSpec> {
  const base = present ?? FRESH;
  const spec: LongRunningSpec = {
    cpu: input.cpu ?? base.cpu,
    memory: input.memory ?? base.memory,
    gpu: input.gpu ?? base.gpu,
    ephemeral_storage_in_gib: input.ephemeral_storage_in_gib ?? base.ephemeral_storage_in_gib,
    cpu_architecture: input.cpu_architecture === undefined ? base.cpu_architecture : input.cpu_architecture,
    min_running_instances: input.min_running_instances ?? base.min_running_instances,
    max_running_instances:
      input.max_running_instances ?? Math.max(base.max_running_instances, input.min_running_instances ?? 0),
    healthchecks: input.healthchecks ? checkHealthchecks(input.healthchecks) : base.healthchecks,
    auto_preview: input.auto_preview ?? base.auto_preview,
    auto_deploy: input.auto_deploy ?? base.auto_deploy,
    ports: input.ports ? await publishPorts(context, place, toPorts(input.ports, base.ports)) : base.ports,
    storage: input.storage ? toStorage(input.storage, base.storage) : base.storage,
    arguments: input.arguments ?? base.arguments,
    // Existing clients clear the entry point by leaving it out, unlike every other field.
    entrypoint: input.entrypoint ?? undefined,
    autoscaling: toAutoscaling(input.autoscaling, base.autoscaling, context.clock.now()),
    ...(await toGroups(context, place, input, present)),
  };
  if (spec.max_running_instances < spec.min_running_instances)
    throw invalidField(
      'max_running_instances',
      `must be at least min_running_instances (${spec.min_running_instances})`,
    );
  if (input.autoscaling) await checkAutoscaling(place.organizationId, spec.autoscaling);
  return spec;
}

/** Makes the part of an answer that comes from the spec of a long-running service. */
export const longRunningView = (
  row: Pick<ServiceRow, 'metadata' | 'id' | 'organization_id'>,
  spec: LongRunningSpec,
) => ({
  maximum_cpu: spec.cpu,
  maximum_memory: spec.memory,
  autoscaling: toAutoscalingView(row, spec.autoscaling),
  ...toGroupsView(row, spec),
});

/**
 * Returns the rollout of an action. A service with storage is recreated: two instances must not write to one volume
 * (docs/contributing/engine.md, *Runtimes*).
 */
export const rolloutOf = (spec: Pick<LongRunningSpec, 'storage'>, action: string): 'ROLLING' | 'RECREATE' | 'NONE' => {
  if (action !== 'DEPLOY' && action !== 'RESTART') return 'NONE';
  return spec.storage.length > 0 ? 'RECREATE' : 'ROLLING';
};
