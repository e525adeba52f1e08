import { ListOf, Merge, named, OneOf, PageQuery, Type, type Static } from '#platform/http/schema.ts';

const ClusterRegion = named(
  'ClusterRegion',
  Type.Object({
    name: Type.String(),
    country_code: Type.String(),
    country: Type.String(),
    city: Type.String(),
    arm_supported: Type.Boolean(),
    zones: Type.Array(Type.String()),
  }),
);
export const ClusterRegionList = ListOf(ClusterRegion);

const CloudProvider = named(
  'CloudProvider',
  Type.Object({
    short_name: Type.String(),
    name: Type.String(),
    logo_url: Type.Optional(Type.String()),
    regions: Type.Array(ClusterRegion),
  }),
);
export const CloudProviderList = ListOf(CloudProvider);

const ClusterInstanceType = named(
  'ClusterInstanceType',
  Type.Object({
    type: Type.String(),
    name: Type.String(),
    cpu: Type.Integer(),
    ram_in_gb: Type.Integer(),
    bandwidth_in_gbps: Type.String(),
    bandwidth_guarantee: Type.String(),
    architecture: Type.String(),
    gpu_info: Type.Optional(
      Type.Object({
        count: Type.Integer(),
        name: Type.String(),
        manufacturer: Type.String(),
        memory_in_mib: Type.String(),
      }),
    ),
    attributes: Type.Object({
      instance_category: Type.String(),
      instance_generation: Type.Integer(),
      instance_family: Type.String(),
      instance_size: Type.String(),
      meets_resource_reqs: Type.Boolean({ description: 'Whether it has the 2 processors and 4 GB that a node needs.' }),
    }),
  }),
);
export const ClusterInstanceTypeList = ListOf(ClusterInstanceType);

const ManagedDatabaseType = named('ManagedDatabaseType', Type.Object({ name: Type.String() }));
export const ManagedDatabaseTypeList = ListOf(ManagedDatabaseType);
export const ManagedDatabaseInstanceTypeList = ListOf(
  named('ManagedDatabaseInstanceType', Type.Object({ name: Type.String() })),
);

/** Query of the instance types that a cluster can be made of. */
export const InstanceTypeQuery = Merge(
  PageQuery,
  Type.Object({
    only_meets_resource_reqs: Type.Optional(
      Type.Boolean({ description: 'Whether types that are too small for a node are left out.' }),
    ),
    with_gpu: Type.Optional(
      Type.Boolean({ description: 'false leaves out types with a GPU; gpu says it more finely.' }),
    ),
    gpu: Type.Optional(
      OneOf(['ONLY', 'INCLUDE', 'EXCLUDE'], {
        description: 'Whether types with a GPU are listed. Without it: INCLUDE.',
      }),
    ),
  }),
);
export type InstanceTypeQuery = Static<typeof InstanceTypeQuery>;
