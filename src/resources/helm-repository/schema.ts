import { kindsWith } from '#kernel/kinds.ts';
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
import { HELM_REPOSITORY_KINDS } from '#resources/helm-repository/kinds.ts';
import { serviceUse } from '#resources/organization/index.ts';
import { credentialFields } from '#resources/registry/index.ts';

const Kind = OneOf(HELM_REPOSITORY_KINDS);
const Answered = Type.Optional(Type.String());

export const HelmRepositoryRequest = named(
  'HelmRepositoryRequest',
  Type.Object({
    name: Name,
    kind: Kind,
    description: Type.Optional(Type.String({ maxLength: 2000 })),
    url: Type.Optional(
      Type.String({
        format: 'uri',
        pattern: '^(https?|oci)://',
        maxLength: 2000,
        description:
          "`https://…` of a repository with an index, `oci://…` of a registry; left out, it is the kind's own.",
      }),
    ),
    skip_tls_verification: Type.Boolean({ description: 'Whether any certificate will do.' }),
    config: Type.Object(credentialFields, {
      description: 'Which fields there are depends on the kind: GET /availableHelmRepository.',
    }),
  }),
);
export type HelmRepositoryRequest = Static<typeof HelmRepositoryRequest>;

export const HelmRepository = named(
  'HelmRepository',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    kind: Kind,
    description: Type.String(),
    url: Type.String(),
    skip_tls_verification: Type.Boolean(),
    associated_services_count: Type.Integer(),
    config: Type.Object({
      username: Answered,
      region: Answered,
      access_key_id: Answered,
      role_arn: Answered,
      scaleway_access_key: Answered,
      scaleway_project_id: Answered,
      azure_tenant_id: Answered,
      azure_subscription_id: Answered,
    }),
  }),
);
export const HelmRepositoryList = ListOf(HelmRepository);

export const AvailableHelmRepositoryList = ListOf(
  named(
    'AvailableHelmRepository',
    Type.Object({
      kind: Kind,
      required_config: Type.Object({}, { additionalProperties: Type.String() }),
      is_mandatory: Type.Boolean({ description: 'Whether it cannot be used without credentials.' }),
    }),
  ),
);

export const ChartsQuery = Merge(
  PageQuery,
  Type.Object({
    chartName: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: 'Answers this chart, if it is there.' }),
    ),
  }),
);

export const HelmChartList = ListOf(
  named('HelmChart', Type.Object({ chart_name: Type.String(), versions: Type.Array(Type.String()) })),
);

export const HelmRepositoryAssociatedServiceList = ListOf(
  named(
    'HelmRepositoryAssociatedService',
    Type.Object({ ...serviceUse, service_type: OneOf(kindsWith('usesHelmRepositories')) }),
  ),
);
