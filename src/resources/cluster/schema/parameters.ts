import { named, Nullable, OneOf, Type, Uuid } from '#platform/http/schema.ts';

const Switch = Type.Object({ enabled: Type.Boolean() });

/** Metrics that are collected on a Kubernetes cluster, and their level of detail. */
export const MetricsParameters = named(
  'ClusterMetricsParameters',
  Type.Object({
    enabled: Type.Optional(Type.Boolean()),
    configuration: Type.Optional(
      Type.Object({
        kind: Type.Optional(OneOf(['MANAGED_BY_QOVERY'])),
        resource_profile: Type.Optional(OneOf(['LOW', 'NORMAL', 'HIGH'])),
        cloud_watch_export_config: Type.Optional(Switch),
        high_availability: Type.Optional(Type.Boolean()),
        internal_network_monitoring: Type.Optional(Switch),
        alerting: Type.Optional(
          Type.Object({
            enabled: Type.Boolean(),
            default_rule_labels: Type.Optional(
              Nullable(
                Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' } }),
              ),
            ),
            spec_config_secret: Type.Optional(Type.String()),
            spec_external_url: Type.Optional(Type.String()),
            config_name: Type.Optional(Type.String()),
          }),
        ),
      }),
    ),
  }),
);

const EksAnywhere = Type.Object({
  git_repository: Type.Object({
    url: Type.String({ format: 'uri' }),
    branch: Type.Optional(Type.String()),
    commit_id: Type.Optional(Type.String()),
    git_token_id: Uuid,
    provider: Type.Optional(OneOf(['BITBUCKET', 'GITHUB', 'GITLAB'])),
  }),
  yaml_file_path: Type.String({ minLength: 1 }),
  cluster_backup: Type.Optional(
    Type.Object({
      enabled: Type.Optional(Type.Boolean()),
      timeout_seconds: Type.Optional(Type.Integer({ minimum: 0 })),
      certs_secret_name: Type.Optional(Type.String()),
      s3: Type.Object({
        bucket: Type.String(),
        region: Type.String(),
        role_arn: Type.String(),
        key_prefix: Type.Optional(Type.String()),
      }),
    }),
  ),
});

/** Values for what stands in a Kubernetes cluster besides the services. */
export const ChartsParameters = named(
  'ClusterInfrastructureChartsParameters',
  Type.Object({
    nginx_parameters: Type.Optional(
      Type.Object({
        replica_count: Type.Optional(Type.Integer({ minimum: 0 })),
        default_ssl_certificate: Type.Optional(Type.String()),
        publish_status_address: Type.Optional(Type.String()),
        annotation_metal_lb_load_balancer_ips: Type.Optional(Type.String()),
        annotation_external_dns_kubernetes_target: Type.Optional(Type.String()),
      }),
    ),
    cert_manager_parameters: Type.Optional(Type.Object({ kubernetes_namespace: Type.Optional(Type.String()) })),
    metal_lb_parameters: Type.Optional(Type.Object({ ip_address_pools: Type.Optional(Type.Array(Type.String())) })),
    eks_anywhere_parameters: Type.Optional(EksAnywhere),
  }),
);

/** Event-driven autoscaling. */
export const Keda = named('ClusterKeda', Switch);

/** Label groups that a cluster carries, by id. */
export const ClusterLabelsGroups = Type.Array(Type.Object({ id: Type.Optional(Uuid) }), { maxItems: 100 });
