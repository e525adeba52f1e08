import { DateTime, Name, named, Nullable, OneOf, Reference, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { REGISTRY_KINDS } from '#resources/registry/index.ts';
import { SERVICE_KINDS } from '#services/holder.ts';
import { ImageName, ImageTag } from '#services/parts/images.ts';
import { longRunningAnswer, longRunningInput } from '#services/parts/long-running.ts';

const Description = Type.Optional(Nullable(Type.String({ maxLength: 2000 })));

export const ContainerRequest = named(
  'ContainerRequest',
  Type.Object({
    name: Name,
    description: Description,
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
    description: Description,
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
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    description: Type.String(),
    environment: Reference,
    icon_uri: Type.String(),
    service_type: OneOf(SERVICE_KINDS),
    registry_id: Uuid,
    registry: Type.Object({ id: Uuid, name: Type.String(), url: Type.String(), kind: OneOf(REGISTRY_KINDS) }),
    image_name: Type.String(),
    tag: Type.String(),
    ...longRunningAnswer,
    maximum_gpu: Type.Integer(),
  }),
);
