import { DateTime, Name, named, Nullable, ListOf, Reference, Type, Uuid } from '#platform/http/schema.ts';

export const StageRequest = named(
  'DeploymentStageRequest',
  Type.Object({ name: Name, description: Type.Optional(Nullable(Type.String({ maxLength: 2000 }))) }),
);

export const AttachRequest = named(
  'AttachServiceRequest',
  Type.Object({
    is_skipped: Type.Optional(
      Type.Boolean({ description: 'Leaves the service out of deployments of the environment.' }),
    ),
  }),
);

export const Stage = named(
  'DeploymentStage',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    environment: Reference,
    name: Type.String(),
    description: Type.String(),
    deployment_order: Type.Integer(),
    services: Type.Array(
      Type.Object({
        id: Uuid,
        created_at: DateTime,
        updated_at: DateTime,
        service_id: Uuid,
        service_type: Type.String(),
        is_skipped: Type.Boolean(),
      }),
    ),
  }),
);

export const StageList = ListOf(Stage);
