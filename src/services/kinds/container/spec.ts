import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { findRegistry } from '#resources/registry/index.ts';
import type { SpecPlace } from '#services/kind.ts';
import type { ContainerInput } from '#services/kinds/container/schema.ts';
import { checkImageName } from '#services/images/image-name.ts';
import { longRunningView, toLongRunningSpec, type LongRunningSpec } from '#services/workload/long-running.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** A container's configuration as it is stored and frozen into snapshots. */
export interface ContainerSpec extends LongRunningSpec {
  registry_id: string;
  image_name: string;
  /** Tag or digest. */
  tag: string;
}

/** Makes the spec from a body: absent fields keep their value, or get the reference's default. */
export async function toContainerSpec(
  context: Context,
  place: SpecPlace,
  input: ContainerInput,
  present: ContainerSpec | null,
): Promise<ContainerSpec> {
  const registryId = required(input.registry_id ?? present?.registry_id, 'registry_id');
  if (registryId !== present?.registry_id) await findRegistry(context, place.organizationId, registryId);
  return {
    ...(await toLongRunningSpec(context, place, input, present)),
    registry_id: registryId,
    image_name: checkImageName(required(input.image_name ?? present?.image_name, 'image_name'), 'image_name'),
    tag: required(input.tag ?? present?.tag, 'tag'),
  };
}

function required(value: string | undefined, field: string): string {
  if (value === undefined) throw invalidField(field, 'is required');
  return value;
}

export const toContainerView = (_context: Context, row: ServiceRow, spec: ContainerSpec): Record<string, unknown> => ({
  ...spec,
  ...longRunningView(row, spec),
  maximum_gpu: spec.gpu,
  registry: {
    id: spec.registry_id,
    name: row.registry_name,
    url: row.registry_url,
    kind: row.registry_kind,
  },
});
