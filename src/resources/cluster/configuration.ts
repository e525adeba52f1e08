import ipaddr from 'ipaddr.js';
import { AppError, badRequest, invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import type { SubTargetType } from '#platform/events/audit.ts';
import type { Static } from '#platform/http/schema.ts';
import type { ClusterNeeds } from '#resources/cluster/needs.ts';
import * as queries from '#resources/cluster/queries.ts';
import { auditCluster, findRow } from '#resources/cluster/rules.ts';
import type { KarpenterSubnetsRequest } from '#resources/cluster/schema/kubernetes.ts';
import type { ClusterCloudProviderInfoRequest, DnsProviderInput } from '#resources/cluster/schema/provider.ts';
import { deleteClusterSecret, openClusterSecret, saveClusterSecret } from '#resources/cluster/secrets.ts';
import { credentialsOf } from '#resources/cluster/service.ts';
import { featureTypeOf, type FeatureValue } from '#resources/cluster/view.ts';

const INFO_PROVIDERS = new Set(['AWS', 'SCW', 'GCP', 'ON_PREMISE', 'AZURE']);

/** Returns the provider, account and region that the cluster runs with; unknown ones are left out, or empty. */
export const toCloudProviderInfo = (row: queries.ClusterRow) => ({
  ...(INFO_PROVIDERS.has(row.cloud_provider) ? { cloud_provider: row.cloud_provider } : {}),
  // Existing clients read its fields without a look at whether it is there.
  credentials: row.credentials_id === null ? {} : { id: row.credentials_id, name: row.credentials_name ?? undefined },
  region: row.region,
});

/** Sets the credentials and the region that the cluster runs with. */
export async function specifyCloudProviderInfo(
  context: Context,
  needs: ClusterNeeds,
  cluster: queries.ClusterRow,
  input: Static<typeof ClusterCloudProviderInfoRequest>,
): Promise<unknown> {
  if (input.cloud_provider && input.cloud_provider !== cluster.cloud_provider)
    throw invalidField('cloud_provider', `can't be changed from ${cluster.cloud_provider}: make another cluster`);
  const id = input.credentials?.id;
  const credentials =
    id === undefined
      ? {}
      : await credentialsOf(context, needs, cluster.organization_id, cluster.cloud_provider, id, '');
  const change = { ...credentials, ...(input.region ? { region: input.region.trim() } : {}) };
  return applyChange(context, cluster, change, toCloudProviderInfo, 'CLUSTER_CREDENTIALS');
}

export interface RouteEntry {
  destination: string;
  target: string;
  description: string;
}

export const toRoutingTable = (row: queries.ClusterRow) => ({ results: row.routing_table as RouteEntry[] });

/** Replaces the routing table. Destinations are CIDRs, each only once. */
export async function editRoutingTable(
  context: Context,
  cluster: queries.ClusterRow,
  routes: RouteEntry[],
): Promise<unknown> {
  const seen = new Set<string>();
  for (const [index, { destination }] of routes.entries()) {
    if (!ipaddr.isValidCIDR(destination))
      throw invalidField(`routes[${index}].destination`, 'must be a network as a CIDR, such as 10.0.0.0/16');
    if (seen.has(destination)) throw invalidField(`routes[${index}].destination`, 'is there twice');
    seen.add(destination);
  }
  return applyChange(context, cluster, { routing_table: routes }, toRoutingTable, 'CLUSTER_ROUTING_TABLE');
}

/** Returns the DNS provider for names of services: by default this installation, under its proxy's domain. */
export const toDnsProvider = (context: Pick<Context, 'settings'>, row: queries.ClusterRow) => ({
  dns_provider: (row.dns_provider as unknown) ?? { provider: 'QOVERY', domain: context.settings.proxyDomain },
});

/** Sets the DNS provider; its secret goes to the vault and is never answered. */
export async function editDnsProvider(
  context: Context,
  cluster: queries.ClusterRow,
  input: DnsProviderInput,
): Promise<unknown> {
  const scope = { organizationId: cluster.organization_id };
  const secret = input.provider === 'CLOUDFLARE' ? input.api_token : input.credentials?.aws_secret_access_key;
  if (input.provider !== 'QOVERY' && secret) await saveClusterSecret(context, scope, cluster.id, 'dns', secret);
  else await deleteClusterSecret(context.db, scope, cluster.id, 'dns');
  return applyChange(context, cluster, { dns_provider: withoutSecrets(input) }, (row) => toDnsProvider(context, row));
}

function withoutSecrets(input: DnsProviderInput): Record<string, unknown> {
  const { provider, domain } = input;
  if (provider === 'QOVERY') return { provider, domain };
  if (provider === 'CLOUDFLARE') return { provider, domain, email: input.email, proxied: input.proxied ?? false };
  const { aws_region, hosted_zone_id = null } = input;
  const credentials = { type: 'STATIC', aws_access_key_id: input.credentials?.aws_access_key_id };
  return { provider, domain, credentials, aws_region, hosted_zone_id };
}

/** Changes the subnets for Fargate of the cluster's own AWS network. 400 if it has none. */
export async function editKarpenterSubnets(
  context: Context,
  cluster: queries.ClusterRow,
  input: Static<typeof KarpenterSubnetsRequest>,
): Promise<void> {
  const features = (cluster.spec.features ?? []) as FeatureValue[];
  const network = features.find(
    ({ value }) => value !== undefined && value !== null && featureTypeOf(value) === 'AWS_USER_PROVIDED_NETWORK',
  );
  if (!network)
    throw badRequest(
      `Cluster ${cluster.name} runs in no VPC of your own on AWS: only such a cluster has subnets for Fargate. Give it that feature first.`,
    );
  const changed = features.map((feature) =>
    feature === network ? { ...feature, value: { ...(feature.value as object), ...input } } : feature,
  );
  await applyChange(context, cluster, { spec: { ...cluster.spec, features: changed } }, () => undefined);
}

/** Switches an EKS Anywhere cluster to another commit of its repository; 400 if the cluster isn't one. */
export async function editEksAnywhereCommit(
  context: Context,
  cluster: queries.ClusterRow,
  commitId: string,
): Promise<unknown> {
  const charts = cluster.spec.infrastructure_charts_parameters;
  const eks = charts?.eks_anywhere_parameters;
  if (!eks)
    throw badRequest(
      `Cluster ${cluster.name} is no EKS Anywhere cluster: it has no infrastructure_charts_parameters.eks_anywhere_parameters.`,
    );
  const parameters = { ...eks, git_repository: { ...eks.git_repository, commit_id: commitId } };
  const spec = {
    ...cluster.spec,
    infrastructure_charts_parameters: { ...charts, eks_anywhere_parameters: parameters },
  };
  return applyChange(context, cluster, { spec }, () => ({ commit_id: commitId }));
}

/** Throws 400 unless the cluster runs on Kubernetes: `what` begins the sentence that says so. */
export function requireKubernetes(cluster: queries.ClusterRow, what: string): void {
  if (cluster.runtime !== 'kubernetes')
    throw badRequest(
      `${what}: cluster ${cluster.name} runs on the ${cluster.runtime} runtime, which is no Kubernetes.`,
    );
}

/** Throws 400 that says what is wrong with a kubeconfig, or that the cluster takes none. */
export async function refuseKubeconfig(cluster: queries.ClusterRow, text: string): Promise<void> {
  requireKubernetes(cluster, 'A kubeconfig has no place here');
  const { checkKubeconfig } = await kubeconfigs();
  await checkKubeconfig(cluster.organization_id, text);
}

/** Stores the kubeconfig of a Kubernetes cluster, which `refuseKubeconfig` has checked. */
export async function saveKubeconfig(context: Context, cluster: queries.ClusterRow, text: string): Promise<void> {
  requireKubernetes(cluster, 'A kubeconfig has no place here');
  const scope = { organizationId: cluster.organization_id };
  await saveClusterSecret(context, scope, cluster.id, 'kubeconfig', text);
  await queries.updateCluster(context.db, scope, cluster.id, {});
  await auditCluster(context, cluster, 'UPDATE', {
    before: { kubeconfig: cluster.has_kubeconfig ? 'set' : 'none' },
    after: { kubeconfig: 'set' },
  });
}

/** Returns the kubeconfig of a Kubernetes cluster without its credentials, which are written only. */
export async function kubeconfigOf(context: Context, cluster: queries.ClusterRow): Promise<string> {
  requireKubernetes(cluster, 'There is no kubeconfig');
  const text = await openClusterSecret(context, { organizationId: cluster.organization_id }, cluster.id, 'kubeconfig');
  if (text === null)
    throw new AppError('not_found', `Cluster ${cluster.name} has no kubeconfig yet: PUT one to the same path.`);
  const { withoutCredentials } = await kubeconfigs();
  return withoutCredentials(cluster.organization_id, text);
}

/** Loaded when one is there: few installations have any. */
const kubeconfigs = () => import('#resources/cluster/kubeconfig.ts');

/** Writes a change with its event and answers the changed part. */
async function applyChange<V>(
  context: Context,
  cluster: queries.ClusterRow,
  change: queries.ClusterChange,
  view: (row: queries.ClusterRow) => V,
  sub?: SubTargetType,
): Promise<V> {
  await queries.updateCluster(context.db, { organizationId: cluster.organization_id }, cluster.id, change);
  const row = await findRow(context, cluster.organization_id, cluster.id);
  await auditCluster(context, row, 'UPDATE', { sub, before: partsOf(cluster, change), after: partsOf(row, change) });
  return view(row);
}

const partsOf = (row: queries.ClusterRow, change: queries.ClusterChange) =>
  Object.fromEntries((Object.keys(change) as (keyof queries.ClusterChange)[]).map((key) => [key, row[key]]));
