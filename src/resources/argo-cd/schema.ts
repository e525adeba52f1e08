import { DateTime, named, Nullable, OneOf, PlainListOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { CloudVendor } from '#resources/cluster/index.ts';

const Url = Type.String({ minLength: 1, maxLength: 2000 });
const Status = OneOf(['connected', 'error']);
const Reason = OneOf(['authentication_failed', 'unreachable', 'insufficient_permissions']);

export const ArgoCdRequest = named(
  'ArgoCdCredentialsRequest',
  Type.Object({
    argocd_url: Type.String({
      minLength: 1,
      maxLength: 2000,
      pattern: '^https?://[^\\s?#]+$',
      description: 'Address of the Argo CD, such as https://argocd.example.com.',
    }),
    argocd_token: Type.String({
      minLength: 1,
      maxLength: 10_000,
      pattern: '^[\\u0021-\\u007e]+$',
      description:
        'Token of an account or a project role. Kept encrypted; answered as ********, which sent back keeps the present one.',
    }),
  }),
);
export type ArgoCdInput = Static<typeof ArgoCdRequest>;

export const ArgoCd = named(
  'ArgoCdCredentials',
  Type.Object({
    id: Uuid,
    cluster_id: Uuid,
    argocd_url: Url,
    argocd_token: Type.String({ description: 'Always ********.' }),
    status: Status,
    reason: Type.Optional(Reason),
    message: Type.Optional(Type.String({ description: 'Why it could not be read.' })),
    last_checked_at: Nullable(DateTime),
    created_at: DateTime,
    updated_at: DateTime,
  }),
);

export const ArgoCdCheck = named(
  'ArgoCdConnectionCheck',
  Type.Object({
    status: Status,
    app_count: Type.Optional(Type.Integer()),
    reason: Type.Optional(Reason),
    message: Type.Optional(Type.String({ description: 'What is wrong, and what would be right.' })),
  }),
);

const destination = {
  argocd_cluster_url: Type.String(),
  argocd_cluster_name: Type.String(),
};
const ArgoCdInstance = named(
  'ArgoCdInstanceMapping',
  Type.Object({
    agent_cluster_id: Uuid,
    agent_cluster_name: Type.String(),
    agent_cluster_cloud_provider: CloudVendor,
    credentials_id: Uuid,
    argocd_url: Type.String(),
    status: Status,
    last_checked_at: DateTime,
    linked_clusters: Type.Array(
      Type.Object({
        ...destination,
        qovery_cluster_id: Uuid,
        qovery_cluster_name: Type.String(),
        qovery_cluster_cloud_provider: CloudVendor,
        qovery_cluster_type: OneOf(['MANAGED', 'SELF_MANAGED', 'PARTIALLY_MANAGED']),
        applications_count: Type.Integer(),
      }),
    ),
    unlinked_clusters: Type.Array(Type.Object({ ...destination, applications_count: Type.Integer() })),
  }),
);
export const ArgoCdInstanceList = PlainListOf(ArgoCdInstance);

export const ArgoCdMappingRequest = named(
  'ArgoCdDestinationClusterMappingRequest',
  Type.Object({ agent_cluster_id: Uuid, argocd_cluster_url: Url, cluster_id: Uuid }),
);
export type ArgoCdMappingInput = Static<typeof ArgoCdMappingRequest>;

export const ArgoCdMapping = named(
  'ArgoCdDestinationClusterMapping',
  Type.Object({ agent_cluster_id: Uuid, argocd_cluster_url: Type.String(), cluster_id: Nullable(Uuid) }),
);

export const ArgoCdMappingQuery = Type.Object({ agentClusterId: Uuid, argocdClusterUrl: Url });
