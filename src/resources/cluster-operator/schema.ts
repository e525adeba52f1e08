import { DateTime, ListOf, named, Nullable, OneOf, Type, Uuid } from '#platform/http/schema.ts';

const OperatorState = OneOf([
  'NOT_ATTACHED',
  'DISCONNECTED',
  'TARGET_UNKNOWN',
  'REPORTED_VERSION_UNKNOWN',
  'CURRENT',
  'OUTDATED_IMAGE',
  'OUTDATED_CHART',
  'OUTDATED_IMAGE_AND_CHART',
]);
const Version = Nullable(Type.String());

export const OperatorStatus = named(
  'ClusterOperatorStatus',
  Type.Object({
    organization_id: Uuid,
    cluster_id: Uuid,
    operator_connected: Type.Boolean(),
    last_heartbeat: Nullable(DateTime),
    operator_version: Version,
    controller_version: Version,
    request_schema_version: Version,
    desired_image_version: Version,
    desired_chart_version: Version,
    status: OperatorState,
    reported_chart_version: Version,
    reported_identity: Nullable(
      Type.Object({
        release_digest: Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }),
        runtime_image_id: Type.String(),
        chart_version: Type.String(),
        observed_at: Nullable(DateTime),
      }),
    ),
  }),
);

export const CLUSTER_KINDS = {
  AWS: 'EKS_SELF_MANAGED',
  SCW: 'SCW_SELF_MANAGED',
  GCP: 'GKE_SELF_MANAGED',
  AZURE: 'AKS_SELF_MANAGED',
} as const;

export const OperatorFleet = ListOf(
  named(
    'ClusterOperatorFleetEntry',
    Type.Object({
      organization_id: Uuid,
      cluster_id: Uuid,
      cluster_name: Type.String(),
      cluster_kind: OneOf([...Object.values(CLUSTER_KINDS), 'SELF_MANAGED']),
      attached: Type.Boolean(),
      connected: Type.Boolean(),
      last_heartbeat: Nullable(DateTime),
      desired_image_version: Version,
      reported_image_version: Version,
      desired_chart_version: Version,
      reported_chart_version: Version,
      status: OperatorState,
    }),
  ),
);

export const OperatorBootstrap = named(
  'ClusterOperatorBootstrap',
  Type.Object({
    chart_repository: Type.String(),
    chart_name: Type.String(),
    chart_version: Type.String(),
    chart_reference: Type.String(),
    namespace: Type.String(),
    release_name: Type.String(),
    values: Type.Object({}, { additionalProperties: true }),
    values_yaml: Type.String(),
    helm_command: Type.String(),
  }),
);

const WantedVersion = Type.String({ minLength: 1, maxLength: 128 });
export const OperatorUpdateRequest = named(
  'ClusterOperatorUpdateRequest',
  Type.Object({ chart_version: WantedVersion, image_version: Type.Optional(Nullable(WantedVersion)) }),
);
export const OperatorUpdate = named(
  'ClusterOperatorUpdate',
  Type.Object({ execution_id: Type.String(), image_version: Type.String(), chart_version: Type.String() }),
);
