import { named, Nullable, OneOf, Type, type TSchema } from '#platform/http/schema.ts';
import { Karpenter } from '#resources/cluster/schema/karpenter.ts';
import { AwsNetwork, GcpNetwork, NatGateway } from '#resources/cluster/schema/network.ts';

/** Features by name. The reference interface says that their ids are UUIDs; its clients send and compare these names. */
const FEATURES = ['VPC_SUBNET', 'STATIC_IP', 'NAT_GATEWAY', 'EXISTING_VPC', 'KARPENTER', 'GKE_KMS_KEY'] as const;

/** Feature in a request: its id and value. */
export const FeatureRequest = named(
  'ClusterFeatureRequest',
  Type.Object({
    id: Type.Optional(OneOf(FEATURES)),
    value: Type.Optional(
      Type.Unsafe<unknown>({
        anyOf: [
          Type.String({ maxLength: 1000 }),
          Type.Boolean(),
          AwsNetwork,
          GcpNetwork,
          Karpenter,
          Nullable(NatGateway),
        ],
      }),
    ),
  }),
);

const FeatureType = OneOf([
  'STRING',
  'BOOLEAN',
  'AWS_USER_PROVIDED_NETWORK',
  'GCP_USER_PROVIDED_NETWORK',
  'KARPENTER',
  'NAT_GATEWAY',
]);

const valueOf = (value: TSchema) => Type.Object({ type: FeatureType, value });

/** Feature in an answer. Title and costs are left out: they belong to a provider's catalogue, which isn't here. */
export const Feature = named(
  'ClusterFeature',
  Type.Object({
    id: Type.Optional(Type.String({ description: `Name of the feature: ${FEATURES.join(', ')}.` })),
    title: Type.Optional(Type.String()),
    description: Type.Optional(Nullable(Type.String())),
    cost_per_month_in_cents: Type.Optional(Nullable(Type.Integer())),
    cost_per_month: Type.Optional(Nullable(Type.Number())),
    currency_code: Type.Optional(Nullable(Type.String())),
    is_cloud_provider_paying_feature: Type.Optional(Type.Boolean()),
    cloud_provider_feature_documentation: Type.Optional(Nullable(Type.String())),
    is_qovery_paying_feature: Type.Optional(Type.Boolean()),
    qovery_feature_documentation: Type.Optional(Nullable(Type.String())),
    value_type: Type.Optional(OneOf(['BOOLEAN'])),
    value_object: Type.Optional(
      Type.Unsafe<Record<string, unknown>>({
        type: 'object',
        anyOf: [
          valueOf(Type.String()),
          valueOf(Type.Boolean()),
          valueOf(AwsNetwork),
          valueOf(GcpNetwork),
          valueOf(Karpenter),
          valueOf(NatGateway),
        ],
      }),
    ),
    is_value_updatable: Type.Optional(Type.Boolean()),
    accepted_values: Type.Optional(
      Type.Array(Type.Unsafe<string | boolean>({ anyOf: [Type.String(), Type.Boolean()] })),
    ),
  }),
);
