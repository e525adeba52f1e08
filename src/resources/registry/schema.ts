import { kindsWith, serviceTypes } from '#kernel/kinds.ts';
import {
  DateTime,
  ListOf,
  Merge,
  Name,
  named,
  OneOf,
  PageQuery,
  Type,
  Uuid,
  type Static,
} from '#platform/http/schema.ts';
import { serviceUse } from '#resources/organization/index.ts';
import { credentialFields } from '#resources/registry/configuration.ts';
import { REGISTRY_KINDS } from '#resources/registry/kinds.ts';

const Kind = OneOf(REGISTRY_KINDS);
const WORKLOAD_IDENTITY = ['workload_identity_federation'] as const;
const Answered = Type.Optional(Type.String());
const Text = Type.Optional(Type.String({ maxLength: 2000 }));

export const ContainerRegistryRequest = named(
  'ContainerRegistryRequest',
  Type.Object({
    name: Name,
    kind: Kind,
    description: Text,
    url: Type.Optional(
      Type.String({
        format: 'uri',
        pattern: '^https?://',
        maxLength: 2000,
        description: "Left out, it is the kind's own, where it has one. A path in it begins the names of its images.",
      }),
    ),
    config: Type.Object(
      {
        ...credentialFields,
        json_credentials: Type.Optional(
          Type.String({ maxLength: 20_000, description: 'Stored encrypted and never answered.' }),
        ),
        gcp_credentials_type: Type.Optional(OneOf(WORKLOAD_IDENTITY)),
        project_id: Text,
        service_account_email: Text,
        workload_identity_provider_resource: Text,
        token_lifetime_seconds: Type.Optional(Type.Integer({ format: 'int32', minimum: 1, maximum: 43_200 })),
      },
      { description: 'Which fields there are depends on the kind: GET /availableContainerRegistry.' },
    ),
  }),
);
export type ContainerRegistryRequest = Static<typeof ContainerRegistryRequest>;

/** Fields of a configuration that are answered, whatever else is stored. */
const Configuration = Type.Object({
  username: Answered,
  region: Answered,
  scaleway_access_key: Answered,
  scaleway_project_id: Answered,
  access_key_id: Answered,
  role_arn: Answered,
  gcp_credentials_type: Type.Optional(OneOf(WORKLOAD_IDENTITY)),
  project_id: Answered,
  service_account_email: Answered,
  workload_identity_provider_resource: Answered,
  token_lifetime_seconds: Type.Optional(Type.Integer({ format: 'int32' })),
  azure_tenant_id: Answered,
  azure_subscription_id: Answered,
  azure_application_id: Answered,
  azure_application_object_id: Answered,
});

export const ContainerRegistry = named(
  'ContainerRegistry',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    kind: Kind,
    description: Type.String(),
    url: Type.String(),
    cluster: Type.Optional(Type.Object({ id: Uuid, name: Type.String() })),
    associated_services_count: Type.Integer(),
    config: Configuration,
  }),
);
export const ContainerRegistryList = ListOf(ContainerRegistry);

export const AvailableContainerRegistryList = ListOf(
  named(
    'AvailableContainerRegistry',
    Type.Object({
      kind: Kind,
      required_config: Type.Object({}, { additionalProperties: Type.String() }),
      is_mandatory: Type.Boolean({ description: 'Whether it cannot be used without credentials.' }),
    }),
  ),
);

export const ImagesQuery = Merge(
  PageQuery,
  Type.Object({
    imageName: Type.Optional(
      Type.String({ minLength: 1, maxLength: 500, description: 'Answers this image, if it is there.' }),
    ),
    search: Type.Optional(
      Type.String({
        maxLength: 255,
        description: 'Answers images whose name holds it, at most 50. Not with imageName.',
      }),
    ),
  }),
);

export const ContainerImageList = ListOf(
  named('ContainerImage', Type.Object({ image_name: Type.String(), versions: Type.Array(Type.String()) })),
);

export const ContainerRegistryAssociatedServiceList = ListOf(
  named(
    'ContainerRegistryAssociatedService',
    Type.Object({ ...serviceUse, service_type: OneOf(serviceTypes(kindsWith('usesRegistries'))) }),
  ),
);
