import { DateTime, named, Nullable, OneOf, PlainListOf, Type, Uuid } from '#platform/http/schema.ts';

const AnalysisKind = OneOf(['COST_RECOMMENDATION', 'DEPRECATED_API_CHECK']);
const AnalysisFormat = OneOf(['TABLE', 'JSON', 'CSV']);

export const AnalysisRequest = named(
  'ClusterAnalysisRequest',
  Type.Object({
    kind: AnalysisKind,
    output_format: AnalysisFormat,
    prometheus_url: Type.Optional(Nullable(Type.String())),
    cmd_args: Type.Optional(Type.Array(Type.String())),
    target_kubernetes_version: Type.Optional(Nullable(Type.String())),
  }),
);

export const Analysis = named(
  'ClusterAnalysis',
  Type.Object({
    id: Uuid,
    cluster_id: Uuid,
    organization_id: Uuid,
    kind: AnalysisKind,
    status: OneOf(['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'TERMINATED']),
    output_format: AnalysisFormat,
    created_at: DateTime,
    updated_at: DateTime,
    triggered_by: Type.String(),
    error_message: Type.Optional(Nullable(Type.String())),
  }),
);
export const AnalysisList = PlainListOf(Analysis);

export const AnalysisLogList = PlainListOf(
  named(
    'ClusterAnalysisLog',
    Type.Object({
      timestamp: DateTime,
      level: Type.String(),
      message: Type.String(),
      line_order: Type.Integer(),
    }),
  ),
);

export const EksAnywhereCommitList = PlainListOf(
  named(
    'ClusterEksAnywhereCommit',
    Type.Object({
      created_at: DateTime,
      git_commit_id: Type.String(),
      tag: Type.String(),
      message: Type.String(),
      author_name: Type.String(),
      author_avatar_url: Type.Optional(Type.String()),
      commit_page_url: Type.Optional(Type.String()),
    }),
  ),
);

export const EksAnywhereCommit = named(
  'ClusterEksAnywhereCommitId',
  Type.Object({ commit_id: Type.String({ pattern: '^[0-9a-f]{7,40}$' }) }),
);

export const EksAnywhereJwt = named('ClusterEksAnywhereJwt', Type.Object({ jwt: Type.String() }));

const Subnets = Type.Optional(Type.Array(Type.String(), { maxItems: 50 }));

export const KarpenterSubnetsRequest = named(
  'ClusterKarpenterSubnetsRequest',
  Type.Object({
    eks_karpenter_fargate_subnets_zone_a_ids: Subnets,
    eks_karpenter_fargate_subnets_zone_b_ids: Subnets,
    eks_karpenter_fargate_subnets_zone_c_ids: Subnets,
  }),
);

export const KubeconfigQuery = Type.Object({
  with_token_from_cli: Type.Optional(Type.Boolean({ description: 'Has no effect: the answer has no credentials.' })),
  read_only: Type.Optional(Type.Boolean({ description: 'Has no effect: the answer has no credentials.' })),
});

export const TokenQuery = Type.Object({
  read_only: Type.Optional(Type.Boolean({ description: 'Has no effect on the refusal.' })),
});

/** `ExecCredential` of Kubernetes: what a program that a kubeconfig names prints. */
export const ClusterToken = named(
  'ClusterToken',
  Type.Object({
    apiVersion: Type.String(),
    kind: Type.String(),
    spec: Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
    status: Type.Object({ token: Type.String(), expirationTimestamp: DateTime }),
  }),
);
