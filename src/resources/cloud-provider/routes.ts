import { notFound } from '#kernel/errors.ts';
import { slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { ListOf, PageQuery, type TSchema } from '#platform/http/schema.ts';
import { Feature } from '#resources/cluster/index.ts';
import * as databases from '#resources/cloud-provider/data/databases.ts';
import * as features from '#resources/cloud-provider/data/features.ts';
import * as types from '#resources/cloud-provider/data/instance-types.ts';
import { PROVIDERS } from '#resources/cloud-provider/data/providers.ts';
import * as regions from '#resources/cloud-provider/data/regions.ts';
import * as schema from '#resources/cloud-provider/schema.ts';

const tag = 'Cloud Provider';
const FeatureList = ListOf(Feature);

interface List {
  id: string;
  path: string;
  summary: string;
  description: string;
  item: TSchema;
  rows: object[];
}

/** A table of this release that every caller may read. */
const listRoute = ({ id, path, summary, description, item, rows }: List): Route =>
  defineRoute({
    id,
    method: 'GET',
    path,
    tag,
    summary,
    description: `${description} The table comes with this release; the provider is not asked.`,
    action: 'authenticated',
    query: PageQuery,
    answer: { status: 200, body: item },
    handler: ({ query }) => slicePage(rows, query),
  });

const regionList = (id: string, path: string, name: string, rows: regions.Region[]): Route =>
  listRoute({
    id,
    path,
    summary: `List the common regions of ${name}`,
    description: `Answers the common regions of ${name} as of ${regions.REGIONS_AS_OF}, each with its place, its zones and whether it has ARM machines. A cluster takes other regions too.`,
    item: schema.ClusterRegionList,
    rows,
  });

const featureList = (id: string, path: string, name: string, rows: object[]): Route =>
  listRoute({
    id,
    path,
    summary: `List the features that a cluster on ${name} can have`,
    description: 'The id of a feature is its name, which `features[].id` of a cluster takes.',
    item: FeatureList,
    rows,
  });

const typeList = (id: string, path: string, name: string, rows: types.InstanceType[]): Route =>
  listRoute({
    id,
    path,
    summary: `List the common instance types of ${name}`,
    description: `Answers processors, memory and network of each common type of machine of ${name}.`,
    item: schema.ClusterInstanceTypeList,
    rows,
  });

/** 404 unless the provider has the region, or the zone. */
function requirePlace(what: string, names: string[], name: string): void {
  if (!names.includes(name)) throw notFound(what);
}

const namesOf = (list: regions.Region[]): string[] => list.map(({ name }) => name);

function chosenTypes(all: types.InstanceType[], query: schema.InstanceTypeQuery): types.InstanceType[] {
  const gpu = query.gpu ?? (query.with_gpu === false ? 'EXCLUDE' : 'INCLUDE');
  return all.filter(
    (type) =>
      (!query.only_meets_resource_reqs || type.attributes.meets_resource_reqs) &&
      (gpu === 'INCLUDE' || (gpu === 'ONLY') === (type.gpu_info !== undefined)),
  );
}

/** Types of machines that nodes can be made of in a region, with filters. */
const nodeTypes = (
  id: string,
  path: `/${string}/{region}`,
  name: string,
  all: types.InstanceType[],
  places: regions.Region[],
): Route =>
  defineRoute({
    id,
    method: 'GET',
    path,
    tag,
    summary: `List the instance types for nodes of ${name} in a region`,
    description: `Answers the common types of machines for nodes, those with ARM processors only where the region has them. 404 for a region that is not in the table of regions. The table comes with this release.`,
    action: 'authenticated',
    query: schema.InstanceTypeQuery,
    answer: { status: 200, body: schema.ClusterInstanceTypeList },
    handler: ({ params, query }) => {
      const { region } = params as { region: string };
      const place = places.find(({ name }) => name === region);
      if (!place) throw notFound('Region');
      const offered = place.arm_supported ? all : all.filter(({ architecture }) => architecture !== 'ARM64');
      return slicePage(chosenTypes(offered, query), query);
    },
  });

const SCALEWAY_ZONES = regions.SCALEWAY_REGIONS.flatMap(({ zones }) => zones);

/** Lists of what cloud providers offer. */
export const cloudProviderRoutes: Route[] = [
  listRoute({
    id: 'listCloudProvider',
    path: '/cloudProvider',
    summary: 'List the cloud providers that a cluster can be registered for',
    description: `Answers each provider with its common regions as of ${regions.REGIONS_AS_OF}.`,
    item: schema.CloudProviderList,
    rows: PROVIDERS,
  }),
  regionList('listAWSRegions', '/aws/region', 'AWS', regions.AWS_REGIONS),
  regionList('listScalewayRegions', '/scaleway/region', 'Scaleway', regions.SCALEWAY_REGIONS),
  regionList('listGcpRegions', '/gcp/region', 'Google Cloud', regions.GCP_REGIONS),
  regionList('listAzureRegions', '/azure/region', 'Azure', regions.AZURE_REGIONS),
  featureList('listAWSFeatures', '/aws/clusterFeature', 'AWS', features.AWS_FEATURES),
  featureList('listScalewayFeatures', '/scaleway/clusterFeature', 'Scaleway', features.SCALEWAY_FEATURES),
  featureList('listGcpFeatures', '/gcp/clusterFeature', 'Google Cloud', features.GCP_FEATURES),
  featureList('listAzureFeatures', '/azure/clusterFeature', 'Azure', features.AZURE_FEATURES),
  typeList('listAWSInstanceType', '/aws/instanceType', 'AWS', types.AWS_INSTANCE_TYPES),
  typeList('listScalewayInstanceType', '/scaleway/instanceType', 'Scaleway', types.SCALEWAY_INSTANCE_TYPES),
  nodeTypes(
    'listAWSEKSInstanceType',
    '/aws/eks/instanceType/{region}',
    'EKS',
    types.AWS_INSTANCE_TYPES,
    regions.AWS_REGIONS,
  ),
  nodeTypes(
    'listAzureAKSInstanceType',
    '/azure/aks/instanceType/{region}',
    'AKS',
    types.AZURE_INSTANCE_TYPES,
    regions.AZURE_REGIONS,
  ),
  nodeTypes(
    'listGcpGkeInstanceType',
    '/gcp/instanceType/{region}',
    'GKE',
    types.GCP_INSTANCE_TYPES,
    regions.GCP_REGIONS,
  ),
  defineRoute({
    id: 'listScalewayKapsuleInstanceType',
    method: 'GET',
    path: '/scaleway/instanceType/{zone}',
    tag,
    summary: 'List the instance types for nodes of Kapsule in a zone',
    description:
      'Answers the common types of machines for nodes. 404 for a zone that is not in the table of regions. The table comes with this release; the provider is not asked.',
    action: 'authenticated',
    query: PageQuery,
    answer: { status: 200, body: schema.ClusterInstanceTypeList },
    handler: ({ params, query }) => {
      requirePlace('Zone', SCALEWAY_ZONES, params.zone);
      return slicePage(types.SCALEWAY_INSTANCE_TYPES, query);
    },
  }),
  listRoute({
    id: 'listAWSManagedDatabaseType',
    path: '/aws/managedDatabase/type',
    summary: 'List the engines of databases that AWS manages',
    description: 'Answers the names that `type` of a database takes.',
    item: schema.ManagedDatabaseTypeList,
    rows: databases.AWS_DATABASE_TYPES.map((name) => ({ name })),
  }),
  listRoute({
    id: 'listSCWManagedDatabaseType',
    path: '/scaleway/managedDatabase/type',
    summary: 'List the engines of databases that Scaleway manages',
    description: 'Answers the names that `type` of a database takes.',
    item: schema.ManagedDatabaseTypeList,
    rows: databases.SCALEWAY_DATABASE_TYPES.map((name) => ({ name })),
  }),
  defineRoute({
    id: 'listAWSManagedDatabaseInstanceType',
    method: 'GET',
    path: '/aws/managedDatabase/instanceType/{region}/{databaseType}',
    tag,
    summary: 'List the instance types of databases that AWS manages in a region',
    description:
      'Answers the common types of machines for databases. 404 for a region that is not in the table of regions, and for an engine that AWS does not manage. The table comes with this release; AWS is not asked.',
    action: 'authenticated',
    query: PageQuery,
    answer: { status: 200, body: schema.ManagedDatabaseInstanceTypeList },
    handler: ({ params, query }) => {
      requirePlace('Region', namesOf(regions.AWS_REGIONS), params.region);
      requirePlace('Database type', [...databases.AWS_DATABASE_TYPES], params.databaseType);
      const names = databases.AWS_DATABASE_INSTANCE_TYPES[params.databaseType as 'REDIS'];
      return slicePage(
        names.map((name) => ({ name })),
        query,
      );
    },
  }),
];
