import { takenNames } from '#platform/database/taken-name.ts';
import { conflict, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { type Scope } from '#platform/database/index.ts';
import type { Static } from '#platform/http/schema.ts';
import { removeAccesses, replaceAccesses } from '#resources/cluster/accesses.ts';
import { allowedNodes, refusePlace } from '#resources/cluster/allowed.ts';
import { requestWork } from '#resources/cluster/work/actions.ts';
import type { ClusterNeeds } from '#resources/cluster/needs.ts';
import * as queries from '#resources/cluster/queries.ts';
import { auditCluster, findRow, refuseLocked } from '#resources/cluster/rules.ts';
import { SPEC_FIELDS, type ClusterRequest } from '#resources/cluster/schema/cluster.ts';
import { kubernetesOf, toClusterView, type FeatureValue } from '#resources/cluster/view.ts';

const refuseTakenName = takenNames('cluster', 'cluster of the organization');

export type ClusterInput = Static<typeof ClusterRequest>;

const RUNTIMES_OF_A_MACHINE = new Set(['host', 'docker']);

export interface NewClusterInput {
  organizationId: string;
  name: string;
  runtime: 'host' | 'docker' | 'kubernetes' | 'fake';
  /** Machine of a host or docker cluster. */
  nodeId: string | null;
  description?: string;
  region?: string;
  /** True if its first deployment is requested at once. */
  deploy?: boolean;
}

/** Creates a cluster without a request: the first one of an installation. The first of an organization is its default. */
export async function insertCluster(context: Context, input: NewClusterInput): Promise<string> {
  const id = newId();
  await insertRow(context, {
    id,
    organization_id: input.organizationId,
    name: input.name,
    description: input.description ?? null,
    runtime: input.runtime,
    node_id: input.nodeId,
    region: input.region ?? 'local',
    cloud_provider: 'ON_PREMISE',
    production: false,
    credentials_id: null,
    credentials_name: null,
    spec: {},
  });
  const row = await findRow(context, input.organizationId, id);
  await auditCluster(context, row, 'CREATE', { after: toClusterView(row) });
  if (input.deploy) await requestWork(context, row, 'DEPLOY');
  return id;
}

/** Creates a cluster; 409 if the organization has one of that name. Nothing is deployed. */
export async function createCluster(
  context: Context,
  needs: ClusterNeeds,
  organizationId: string,
  input: ClusterInput,
): Promise<unknown> {
  const runtime = input.runtime ?? 'kubernetes';
  const id = newId();
  const node = await chooseNode(context, organizationId, runtime, input.node_id);
  await refusePlace(context, organizationId, { runtime, node_id: node });
  const parts = await partsOf(context, needs, organizationId, input);
  await insertRow(context, {
    id,
    organization_id: organizationId,
    runtime,
    node_id: node,
    cloud_provider: input.cloud_provider,
    credentials_id: null,
    credentials_name: null,
    description: null,
    production: false,
    ...parts,
    spec: { kubernetes: kubernetesOf(runtime), ...parts.spec },
  });
  await saveAccesses(context, { organizationId }, { id, accesses: [] }, input);
  const row = await findRow(context, organizationId, id);
  await auditCluster(context, row, 'CREATE', { after: toClusterView(row) });
  return toClusterView(row);
}

/** Changes a cluster; fields that are left out stay. Provider, runtime, machine and kind cannot change. */
export async function editCluster(
  context: Context,
  needs: ClusterNeeds,
  cluster: queries.ClusterRow,
  input: ClusterInput,
): Promise<unknown> {
  const scope = { organizationId: cluster.organization_id };
  refuseFixed(cluster, input);
  await refusePlace(context, cluster.organization_id, cluster);
  const { spec, ...change } = await partsOf(context, needs, cluster.organization_id, input);
  await refuseTakenName(change.name, () =>
    queries.updateCluster(context.db, scope, cluster.id, { ...change, spec: { ...cluster.spec, ...spec } }),
  );
  await saveAccesses(context, scope, cluster, input);
  const row = await findRow(context, cluster.organization_id, cluster.id);
  await auditCluster(context, row, 'UPDATE', { before: toClusterView(cluster), after: toClusterView(row) });
  return toClusterView(row);
}

/**
 * Removes a cluster that nothing stands on; work on it ends where it is. 409 with environments (docs/contributing/rules.md 19), while it is
 * locked (16), or while variables read from its secret managers. What Kubernetes runs besides our environments is left alone.
 */
export async function deleteCluster(context: Context, cluster: queries.ClusterRow): Promise<void> {
  const scope = { organizationId: cluster.organization_id };
  refuseLocked(context, cluster);
  const { names, total } = await queries.findEnvironmentNames(context.db, scope, cluster.id);
  if (total > 0)
    throw conflict(
      `Cluster ${cluster.name} has ${total} ${total === 1 ? 'environment' : 'environments'} (${names.join(', ')}${total > names.length ? ', …' : ''}): delete them first.`,
    );
  await removeAccesses(context.db, scope, cluster.accesses);
  await queries.deleteClusterRow(context.db, scope, cluster.id);
  await auditCluster(context, cluster, 'DELETE', { before: toClusterView(cluster) });
}

/** Replaces the accesses by those of the request; a list that is left out stays. */
async function saveAccesses(
  context: Context,
  scope: Scope,
  cluster: Pick<queries.ClusterRow, 'id' | 'accesses'>,
  input: ClusterInput,
): Promise<void> {
  for (const list of ['secret_manager_accesses', 'additional_secret_manager_accesses'] as const)
    if (input[list]) await replaceAccesses(context, scope, cluster.id, cluster.accesses, list, input[list]);
}

async function insertRow(context: Context, cluster: Omit<queries.NewCluster, 'is_default'>): Promise<void> {
  const first = !(await queries.hasClusters(context.db, { organizationId: cluster.organization_id }));
  await refuseTakenName(cluster.name, () => queries.insertClusterRow(context.db, { ...cluster, is_default: first }));
}

/** Returns the columns that a request gives, checked against the records that they name. */
async function partsOf(context: Context, needs: ClusterNeeds, organizationId: string, input: ClusterInput) {
  const { name, description, region, cloud_provider, cloud_provider_credentials, production } = input;
  if ((input.min_running_nodes ?? 0) > (input.max_running_nodes ?? Infinity))
    throw invalidField('min_running_nodes', 'must not be larger than max_running_nodes');
  await refuseUnknownParts(context, needs, organizationId, input);
  const credentials = cloud_provider_credentials?.credentials?.id;
  return {
    name: name.trim(),
    region: region.trim(),
    ...(description === undefined ? {} : { description }),
    ...(production === undefined ? {} : { production }),
    ...(credentials === undefined
      ? {}
      : await credentialsOf(
          context,
          needs,
          organizationId,
          cloud_provider,
          credentials,
          'cloud_provider_credentials.',
        )),
    spec: specOf(input),
  };
}

/** Returns the fields that are stored as they came. Other fields, such as those of an answer that is sent back, are dropped. */
function specOf(input: ClusterInput): Record<string, unknown> {
  const given = Object.entries(input).filter(([field, value]) => SPEC_FIELDS.includes(field) && value !== undefined);
  const features = input.features?.map(withoutNull);
  return { ...Object.fromEntries(given), ...(features ? { features } : {}) };
}

/** Removes a null type from a NAT gateway: it means a gateway without a type. */
function withoutNull(feature: FeatureValue): FeatureValue {
  const value = feature.value as { nat_gateway_type?: unknown } | null | undefined;
  return value?.nat_gateway_type === null ? { ...feature, value: {} } : feature;
}

/** Returns the columns for credentials that a request names; 400 if they aren't the organization's or are another provider's. */
export async function credentialsOf(
  context: Context,
  needs: ClusterNeeds,
  organizationId: string,
  cloudProvider: string,
  id: string,
  path: string,
) {
  const found = await needs.holdCredentials(context, organizationId, id);
  if (!found) throw invalidField(`${path}credentials.id`, 'names no credentials of this organization');
  if (found.cloudProvider !== cloudProvider)
    throw invalidField(
      `${path}credentials.id`,
      `names credentials for ${found.cloudProvider}, but the cluster's provider is ${cloudProvider}`,
    );
  return { credentials_id: found.id, credentials_name: found.name };
}

async function refuseUnknownParts(
  context: Context,
  needs: ClusterNeeds,
  organizationId: string,
  input: ClusterInput,
): Promise<void> {
  const groups = (input.labels_groups ?? []).flatMap((group) => group.id ?? []);
  const [unknown] = groups.length > 0 ? await needs.unknownLabelsGroups(context, organizationId, groups) : [];
  if (unknown !== undefined)
    throw invalidField('labels_groups', `${unknown} names no label group of this organization`);
  const repository = input.infrastructure_charts_parameters?.eks_anywhere_parameters?.git_repository;
  if (repository && !(await queries.holdGitToken(context.db, { organizationId }, repository.git_token_id)))
    throw invalidField(
      'infrastructure_charts_parameters.eks_anywhere_parameters.git_repository.git_token_id',
      'names no git token of this organization',
    );
}

function refuseFixed(cluster: queries.ClusterRow, input: ClusterInput): void {
  const fixed: [string, string | undefined, unknown][] = [
    ['cloud_provider', input.cloud_provider, cluster.cloud_provider],
    ['kubernetes', input.kubernetes, cluster.spec.kubernetes ?? kubernetesOf(cluster.runtime)],
    ['runtime', input.runtime, cluster.runtime],
    ['node_id', input.node_id, cluster.node_id],
  ];
  for (const [field, wanted, present] of fixed)
    if (wanted !== undefined && wanted !== present)
      throw invalidField(field, `can't be changed from ${String(present)}: make another cluster`);
}

/** Chooses the machine of a new cluster. Messages name machines by their ids: their names are the operator's. */
async function chooseNode(
  context: Context,
  organizationId: string,
  runtime: string,
  wanted: string | undefined,
): Promise<string | null> {
  if (!RUNTIMES_OF_A_MACHINE.has(runtime)) {
    if (wanted !== undefined)
      throw invalidField(
        'node_id',
        `is not allowed here: a ${runtime} cluster runs on no machine of this installation`,
      );
    return null;
  }
  const nodes = await allowedNodes(context, organizationId, await queries.listNodes(context.db));
  if (wanted === undefined) {
    if (nodes.length === 1) return nodes[0]!.id;
    const choices = nodes.map((node) => node.id).join(', ');
    throw invalidField(
      'node_id',
      choices ? `is required: one of ${choices}` : 'no worker runs on any machine that this organization may use',
    );
  }
  if (!nodes.some((node) => node.id === wanted))
    throw invalidField('node_id', 'names no machine that this organization may use');
  return wanted;
}
