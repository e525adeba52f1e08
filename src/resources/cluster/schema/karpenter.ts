import { named, Nullable, OneOf, Type } from '#platform/http/schema.ts';

const DISK_IOPS = { minimum: 3000, maximum: 16_000 };
const DISK_THROUGHPUT = { minimum: 125, maximum: 1000 };

/** Disk of nodes: operations a second and MiB a second. */
export const DiskSpeed = {
  disk_iops: Type.Optional(Type.Integer(DISK_IOPS)),
  disk_throughput: Type.Optional(Type.Integer(DISK_THROUGHPUT)),
};

const Requirements = Type.Array(
  Type.Object({
    key: OneOf(['InstanceFamily', 'InstanceSize', 'Arch', 'SkuFamily', 'SkuVersion']),
    operator: OneOf(['In']),
    values: Type.Array(Type.String({ maxLength: 255 }), { maxItems: 100 }),
  }),
  { maxItems: 100 },
);

const Consolidation = Type.Object({
  enabled: Type.Boolean(),
  days: Type.Array(OneOf(['MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY', 'SATURDAY', 'SUNDAY']), {
    maxItems: 7,
  }),
  start_time: Type.String({ maxLength: 255 }),
  duration: Type.String({ maxLength: 255 }),
});

const Limits = Type.Object({
  enabled: Type.Boolean(),
  max_cpu_in_vcpu: Type.Integer(),
  max_memory_in_gibibytes: Type.Integer(),
  max_gpu: Type.Optional(Type.Integer({ minimum: 0 })),
});

const ConsolidateAfter = Type.Optional(Type.String({ pattern: '^\\d+(s|m|h)$', maxLength: 255 }));

const pool = {
  limits: Type.Optional(Limits),
  spot_enabled: Type.Optional(Nullable(Type.Boolean())),
  consolidate_after: ConsolidateAfter,
};
const ConsolidatedPool = Type.Object({ consolidation: Type.Optional(Consolidation), ...pool });

/** Node pools that Karpenter makes. */
export const Karpenter = named(
  'ClusterKarpenter',
  Type.Object({
    spot_enabled: Type.Boolean(),
    disk_size_in_gib: Type.Integer(),
    ...DiskSpeed,
    default_service_architecture: OneOf(['AMD64', 'ARM64']),
    qovery_node_pools: Type.Object({
      requirements: Requirements,
      stable_override: Type.Optional(ConsolidatedPool),
      default_override: Type.Optional(Type.Object(pool)),
      gpu_override: Type.Optional(
        Type.Object({
          consolidation: Type.Optional(Consolidation),
          limits: Type.Optional(Limits),
          requirements: Type.Optional(Requirements),
          disk_size_in_gib: Type.Optional(Type.Integer({ minimum: 0 })),
          ...DiskSpeed,
          spot_enabled: Type.Optional(Type.Boolean()),
          consolidate_after: ConsolidateAfter,
        }),
      ),
      cronjob_override: Type.Optional(ConsolidatedPool),
    }),
  }),
);
