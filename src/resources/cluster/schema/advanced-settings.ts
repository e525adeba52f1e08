import { READS_TEXTS } from '#platform/http/texts.ts';
import { named, Nullable, OneOf, Type, Uuid, type TSchema } from '#platform/http/schema.ts';

interface AdvancedSetting {
  schema: TSchema;
  default: unknown;
}

const number = (fallback: number, minimum = 0, maximum?: number): AdvancedSetting => ({
  schema: Type.Integer({ minimum, ...(maximum === undefined ? {} : { maximum }) }),
  default: fallback,
});
const flag = (fallback: boolean): AdvancedSetting => ({ schema: Type.Boolean(), default: fallback });
const text = (fallback: string): AdvancedSetting => ({ schema: Type.String({ maxLength: 1000 }), default: fallback });
const oneOf = <const V extends readonly string[]>(fallback: V[number], ...values: V): AdvancedSetting => ({
  schema: OneOf(values),
  default: fallback,
});
const networks = (): AdvancedSetting => ({
  schema: Type.Array(Type.String(), { maxItems: 200, description: 'CIDRs.' }),
  default: ['0.0.0.0/0'],
});
const orNull = (schema: TSchema): AdvancedSetting => ({ schema: Nullable(schema), default: null });

/** Request and limit of milli-CPU and of MiB of a component of the logs' storage. */
const loki = (part: string): Record<string, AdvancedSetting> => ({
  [`loki.${part}.cpu_request_m`]: number(100, 1),
  [`loki.${part}.cpu_limit_m`]: number(1000, 1),
  [`loki.${part}.memory_request_mib`]: number(512, 1),
  [`loki.${part}.memory_limit_mib`]: number(1024, 1),
});

const database = (type: string): Record<string, AdvancedSetting> => ({
  [`database.${type}.deny_any_access`]: flag(false),
  [`database.${type}.allowed_cidrs`]: networks(),
});

/** Name of the setting with the registry that images built for the cluster are pushed to. */
export const REGISTRY_SETTING = 'registry.id';

/** Every advanced setting of a cluster: the reference's keys, and the registry of built images. Units stand in their names; retention times without one are seconds. */
export const ADVANCED_SETTINGS: Record<string, AdvancedSetting> = {
  'aws.cloudwatch.eks_logs_retention_days': number(90, 0, 3653),
  'aws.vpc.enable_s3_flow_logs': flag(false),
  'aws.vpc.flow_logs_retention_days': number(365),
  'aws.vpc.enable_nat_gateway_secondary_eip': flag(false),
  'loki.log_retention_in_week': number(12, 1),
  'loki.deployment_mode': oneOf('single_binary', 'single_binary', 'simple_scalable'),
  ...loki('single_binary'),
  ...loki('write'),
  ...loki('read'),
  ...loki('backend'),
  [REGISTRY_SETTING]: orNull({
    ...Uuid,
    description: 'Container registry of the organization that images built for a Kubernetes cluster are pushed to.',
  }),
  'registry.image_retention_time': number(31_536_000),
  'cloud_provider.container_registry.tags': {
    schema: Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' } }),
    default: {},
  },
  'aws.eks.enable_alb_controller': flag(true),
  'aws.eks.enable_efs_addon': flag(false),
  'aws.eks.efs.throughput_mode': oneOf('elastic', 'bursting', 'elastic', 'provisioned'),
  'aws.eks.efs.performance_mode': oneOf('generalPurpose', 'generalPurpose', 'maxIO'),
  'aws.eks.efs.transition_to_ia': oneOf(
    'AFTER_30_DAYS',
    'AFTER_1_DAY',
    'AFTER_7_DAYS',
    'AFTER_14_DAYS',
    'AFTER_30_DAYS',
    'AFTER_60_DAYS',
    'AFTER_90_DAYS',
    '',
  ),
  'load_balancer.size': text('lb-s'),
  ...database('postgresql'),
  ...database('mysql'),
  ...database('mongodb'),
  ...database('redis'),
  'aws.iam.admin_group': text('Admins'),
  'aws.eks.ec2.metadata_imds': oneOf('required', 'optional', 'required'),
  'aws.eks.ec2.ami': text('AmazonLinux2023'),
  'pleco.resources_ttl': number(-1, -1),
  'registry.mirroring_mode': oneOf('Service', 'Cluster', 'Service'),
  'nginx.vcpu.request_in_milli_cpu': number(200, 1),
  'nginx.vcpu.limit_in_milli_cpu': number(700, 1),
  'nginx.memory.request_in_mib': number(768, 1),
  'nginx.memory.limit_in_mib': number(768, 1),
  'envoy.gateway_api.http_request_timeout_seconds': orNull(Type.Integer({ minimum: 0 })),
  'envoy.gateway_api.http_connection_idle_timeout_seconds': orNull(Type.Integer({ minimum: 0 })),
  'envoy.gateway_api.retry.num_retries': orNull(Type.Integer({ minimum: 0 })),
  'envoy.gateway_api.retry.retry_on': orNull(Type.String()),
  'envoy.gateway_api.retry.http_status_codes': orNull(Type.String({ pattern: '^\\d{3}(,\\d{3})*$' })),
  'envoy.gateway_api.retry.per_try_timeout_seconds': orNull(Type.Integer({ minimum: 1 })),
  'nginx.hpa.cpu_utilization_percentage_threshold': number(50, 1, 100),
  'nginx.hpa.min_number_instances': number(2, 1),
  'nginx.hpa.max_number_instances': number(25, 1),
  'storageclass.fast_ssd': text(''),
  'qovery.static_ip_mode': flag(false),
  'k8s.api.allowed_public_access_cidrs': networks(),
};

/** Settings that hold networks. */
export const NETWORK_SETTINGS = Object.keys(ADVANCED_SETTINGS).filter((key) => key.endsWith('_cidrs'));

/** Pairs of which the first must not be larger than the second. */
export const ORDERED_SETTINGS: [string, string][] = [
  ...['single_binary', 'write', 'read', 'backend'].flatMap((part): [string, string][] => [
    [`loki.${part}.cpu_request_m`, `loki.${part}.cpu_limit_m`],
    [`loki.${part}.memory_request_mib`, `loki.${part}.memory_limit_mib`],
  ]),
  ['nginx.vcpu.request_in_milli_cpu', 'nginx.vcpu.limit_in_milli_cpu'],
  ['nginx.memory.request_in_mib', 'nginx.memory.limit_in_mib'],
  ['nginx.hpa.min_number_instances', 'nginx.hpa.max_number_instances'],
];

const properties = Object.fromEntries(
  Object.entries(ADVANCED_SETTINGS).map(([key, setting]) => [key, Type.Optional(Nullable(setting.schema))]),
);

export const ClusterAdvancedSettingsRequest = named(
  'ClusterAdvancedSettingsRequest',
  Type.Object(properties, {
    ...READS_TEXTS,
    description: 'What is absent or null falls back to its default.',
    // What no setting is called stays in, so that it is refused by its name.
    additionalProperties: true,
  }),
);

export const ClusterAdvancedSettings = named(
  'ClusterAdvancedSettings',
  Type.Object(Object.fromEntries(Object.entries(ADVANCED_SETTINGS).map(([key, { schema }]) => [key, schema]))),
);
