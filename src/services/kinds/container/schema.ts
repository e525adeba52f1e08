import { Name, named, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { REGISTRY_KINDS } from '#resources/registry/index.ts';
import { commonAnswer } from '#services/service/common-fields.ts';
import { ImageName, ImageTag } from '#services/images/image-name.ts';
import { longRunningAnswer, longRunningInput } from '#services/workload/long-running.ts';

export const ContainerRequest = named(
  'ContainerRequest',
  Type.Object({
    name: Name,
    registry_id: Uuid,
    image_name: ImageName,
    tag: ImageTag,
    ...longRunningInput,
  }),
);

export const ContainerEditRequest = named(
  'ContainerEditRequest',
  Type.Object({
    name: Type.Optional(Name),
    registry_id: Type.Optional(Uuid),
    image_name: Type.Optional(ImageName),
    tag: Type.Optional(ImageTag),
    ...longRunningInput,
  }),
);
export type ContainerInput = Static<typeof ContainerEditRequest>;

export const ContainerDeployRequest = named(
  'ContainerDeployRequest',
  Type.Object({ image_tag: Type.Optional(ImageTag) }),
);

export const Container = named(
  'Container',
  Type.Object({
    ...commonAnswer,
    registry_id: Uuid,
    registry: named(
      'RegistryOfContainer',
      Type.Object({ id: Uuid, name: Type.String(), url: Type.String(), kind: OneOf(REGISTRY_KINDS) }),
    ),
    image_name: Type.String(),
    tag: Type.String(),
    ...longRunningAnswer,
    maximum_gpu: Type.Integer(),
  }),
);
