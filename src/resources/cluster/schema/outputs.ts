import { named, Nullable, OneOf, Type } from '#platform/http/schema.ts';

const text = Type.String();

/** Outputs of a managed Kubernetes after its creation. Left out for clusters that are not created from here. */
export const InfrastructureOutputs = named(
  'ClusterInfrastructureOutputs',
  Type.Unsafe<Record<string, unknown>>({
    type: 'object',
    anyOf: [
      Type.Object({ kind: OneOf(['AKS']), cluster_name: text, cluster_oidc_issuer: text }),
      Type.Object({
        kind: OneOf(['EKS']),
        cluster_name: text,
        cluster_arn: text,
        cluster_oidc_issuer: text,
        vpc_id: text,
        external_secrets_automatic_authentication: Type.Optional(Nullable(Type.Object({ eks_role_arn: text }))),
      }),
      Type.Object({
        kind: OneOf(['GKE']),
        cluster_name: text,
        cluster_self_link: text,
        external_secrets_automatic_authentication: Type.Optional(Nullable(Type.Object({ gke_service_account: text }))),
      }),
      Type.Object({ kind: OneOf(['SCW_KAPSULE']), cluster_name: text }),
    ],
  }),
);
