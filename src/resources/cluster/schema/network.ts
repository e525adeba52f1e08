import { named, Nullable, OneOf, Type } from '#platform/http/schema.ts';

/** Name or id at a cloud provider. */
const Name = Type.String({ maxLength: 255 });
const Ids = Type.Array(Name, { maxItems: 50 });
const OptionalIds = Type.Optional(Nullable(Ids));

/** Subnets for Fargate, the part of a network that can be edited on its own. */
const KarpenterSubnets = {
  eks_karpenter_fargate_subnets_zone_a_ids: OptionalIds,
  eks_karpenter_fargate_subnets_zone_b_ids: OptionalIds,
  eks_karpenter_fargate_subnets_zone_c_ids: OptionalIds,
};

/** VPC on AWS that the user provides. */
export const AwsNetwork = named(
  'ClusterAwsNetwork',
  Type.Object({
    aws_vpc_eks_id: Name,
    eks_subnets_zone_a_ids: Ids,
    eks_subnets_zone_b_ids: Ids,
    eks_subnets_zone_c_ids: Ids,
    documentdb_subnets_zone_a_ids: OptionalIds,
    documentdb_subnets_zone_b_ids: OptionalIds,
    documentdb_subnets_zone_c_ids: OptionalIds,
    elasticache_subnets_zone_a_ids: OptionalIds,
    elasticache_subnets_zone_b_ids: OptionalIds,
    elasticache_subnets_zone_c_ids: OptionalIds,
    rds_subnets_zone_a_ids: OptionalIds,
    rds_subnets_zone_b_ids: OptionalIds,
    rds_subnets_zone_c_ids: OptionalIds,
    ...KarpenterSubnets,
    eks_create_nodes_in_private_subnet: Type.Optional(Type.Boolean()),
  }),
);

/** VPC on Google Cloud that the user provides. */
export const GcpNetwork = named(
  'ClusterGcpNetwork',
  Type.Object({
    vpc_name: Name,
    vpc_project_id: Type.Optional(Nullable(Name)),
    subnetwork_name: Type.Optional(Nullable(Name)),
    ip_range_services_name: Type.Optional(Nullable(Name)),
    ip_range_pods_name: Type.Optional(Nullable(Name)),
    additional_ip_range_pods_names: Type.Optional(Ids),
    private_nodes: Type.Optional(Type.Boolean()),
  }),
);

/** Kind of NAT gateway; without other properties, so that nothing else passes for one. */
export const NatGateway = Type.Object(
  {
    nat_gateway_type: Type.Optional(
      Nullable(
        Type.Unsafe<Record<string, unknown>>({
          type: 'object',
          anyOf: [
            // Null has to be one of the forms as well.
            Nullable(
              Type.Object({
                provider: OneOf(['scaleway']),
                type: OneOf(['VPC-GW-S', 'VPC-GW-M', 'VPC-GW-L', 'VPC-GW-XL']),
              }),
            ),
            Type.Object({
              provider: OneOf(['gcp']),
              static_ips_enabled: Type.Boolean(),
              static_ips_count: Type.Integer({ minimum: 1 }),
            }),
          ],
        }),
      ),
    ),
  },
  { additionalProperties: false },
);
