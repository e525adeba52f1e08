import { DateTime, ListOf, Name, named, Nullable, OneOf, Reference, Type, Uuid } from '#platform/http/schema.ts';
import { Feature, FeatureRequest } from '#resources/cluster/schema/features.ts';
import { DiskSpeed } from '#resources/cluster/schema/karpenter.ts';
import { InfrastructureOutputs } from '#resources/cluster/schema/outputs.ts';
import {
  ChartsParameters,
  ClusterLabelsGroups,
  Keda,
  MetricsParameters,
} from '#resources/cluster/schema/parameters.ts';
import { ClusterCloudProviderInfoRequest } from '#resources/cluster/schema/provider.ts';
import {
  AdditionalSecretManagerAccess,
  AdditionalSecretManagerAccessRequest,
  SecretManagerAccess,
  SecretManagerAccessRequest,
} from '#resources/cluster/schema/secret-managers.ts';
import { ClusterState } from '#resources/cluster/schema/status.ts';
import { CloudVendor } from '#resources/cluster/schema/vendors.ts';

const KubernetesKind = OneOf(['MANAGED', 'SELF_MANAGED', 'PARTIALLY_MANAGED']);

/** Runtime of a cluster's workloads. An addition to the reference interface, which knows Kubernetes only. */
const ClusterRuntime = OneOf(['host', 'docker', 'kubernetes', 'fake']);

const parameters = {
  min_running_nodes: Type.Optional(Type.Integer({ minimum: 0 })),
  max_running_nodes: Type.Optional(Type.Integer({ minimum: 0 })),
  disk_size: Type.Optional(Type.Integer({ minimum: 0, description: 'GiB a node.' })),
  ...DiskSpeed,
  instance_type: Type.Optional(Type.String({ maxLength: 255 })),
  kubernetes: Type.Optional(KubernetesKind),
  production: Type.Optional(Type.Boolean()),
  ssh_keys: Type.Optional(Type.Array(Type.String({ maxLength: 16_384 }), { maxItems: 100 })),
  metrics_parameters: Type.Optional(MetricsParameters),
  infrastructure_charts_parameters: Type.Optional(ChartsParameters),
  keda: Type.Optional(Keda),
  labels_groups: Type.Optional(ClusterLabelsGroups),
};

/** Fields of a request that are kept as they are, in the cluster's spec. */
export const SPEC_FIELDS = [...Object.keys(parameters).filter((field) => field !== 'production'), 'features'];

export const ClusterRequest = named(
  'ClusterRequest',
  Type.Object({
    name: Name,
    description: Type.Optional(Type.String({ maxLength: 2000 })),
    region: Type.String({ minLength: 1, maxLength: 255 }),
    cloud_provider: CloudVendor,
    cloud_provider_credentials: Type.Optional(Nullable(ClusterCloudProviderInfoRequest)),
    ...parameters,
    features: Type.Optional(Type.Array(FeatureRequest, { maxItems: 100 })),
    secret_manager_accesses: Type.Optional(Type.Array(SecretManagerAccessRequest, { maxItems: 100 })),
    additional_secret_manager_accesses: Type.Optional(
      Type.Array(AdditionalSecretManagerAccessRequest, { maxItems: 100 }),
    ),
    runtime: Type.Optional(ClusterRuntime),
    node_id: Type.Optional(Uuid),
  }),
);

export const Cluster = named(
  'Cluster',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    organization: Reference,
    name: Type.String(),
    description: Type.String(),
    region: Type.String(),
    cloud_provider: CloudVendor,
    ...parameters,
    cpu: Type.Optional(Type.Integer()),
    memory: Type.Optional(Type.Integer()),
    estimated_cloud_provider_cost: Type.Optional(Type.Integer()),
    status: ClusterState,
    has_access: Type.Boolean(),
    version: Type.Optional(Type.String({ description: 'What the runtime called itself when it was last reached.' })),
    is_default: Type.Boolean(),
    is_demo: Type.Boolean(),
    features: Type.Array(Feature),
    deployment_status: OneOf(['NEVER_DEPLOYED', 'OUT_OF_DATE', 'UP_TO_DATE']),
    infrastructure_outputs: Type.Optional(InfrastructureOutputs),
    secret_manager_accesses: Type.Array(SecretManagerAccess),
    additional_secret_manager_accesses: Type.Array(AdditionalSecretManagerAccess, {
      description: 'Those of secret managers that the reference interface does not know.',
    }),
    runtime: ClusterRuntime,
    node_id: Type.Optional(Uuid),
  }),
);

export const ClusterList = ListOf(Cluster);
