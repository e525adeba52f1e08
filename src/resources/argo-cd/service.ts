import { invalidField, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { audit, type EventType, type SubTargetType } from '#platform/events/audit.ts';
import { openArgoCd, type Connection } from '#resources/argo-cd/api.ts';
import { clientFor, findAccessOf, tokenPlace } from '#resources/argo-cd/access.ts';
import { ARGO_CD } from '#resources/argo-cd/channels.ts';
import type { ArgoCdNeeds } from '#resources/argo-cd/needs.ts';
import * as queries from '#resources/argo-cd/queries.ts';
import { withoutSlash } from '#kernel/parsing/argo-cd.ts';
import type { ArgoCdInput, ArgoCdMappingInput } from '#resources/argo-cd/schema.ts';
import { clusterTarget, type ClusterTarget } from '#resources/cluster/index.ts';

/** Text that stands for the token in answers; in a request it keeps the present token (docs/contributing/rules.md 39). */
const MASK = '********';

/** Returns the configuration as it is answered: never the token itself. */
const toArgoCdView = (row: queries.ArgoCdRow) => ({
  id: row.id,
  cluster_id: row.cluster_id,
  argocd_url: row.url,
  argocd_token: MASK,
  status: row.status,
  reason: row.reason ?? undefined,
  message: row.message ?? undefined,
  last_checked_at: row.last_checked_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
});

/** Returns the configuration of a cluster's Argo CD; 404 if it has none. */
export async function getArgoCd(context: Context, cluster: ClusterTarget) {
  const row = await queries.findByCluster(context.db, cluster, cluster.id);
  if (!row) throw notFound('Argo CD of the cluster');
  return toArgoCdView(row);
}

/**
 * Stores the URL and token of a cluster's Argo CD over the present ones, and checks the connection at once. A failed check is stored too
 * and refuses nothing, because the Argo CD may be away just now. Its apps are read from now on. Not in a transaction: it calls the Argo CD.
 */
export async function saveArgoCd(
  context: Context & { signal: AbortSignal },
  cluster: ClusterTarget,
  input: ArgoCdInput,
) {
  const { url, token } = await accessOf(context, cluster, input);
  const found = await openArgoCd(
    clientFor(context),
    { organizationId: cluster.organizationId, url, token },
    context.signal,
  ).check();
  return inTransaction(context, async (inside) => {
    const { organizationId, id: clusterId } = cluster;
    // The cluster may be gone by now.
    if (!(await clusterTarget.find(inside.db, clusterId, [organizationId], { lock: true }))) throw notFound('Cluster');
    const before = await queries.lockByCluster(inside.db, cluster, clusterId);
    await queries.saveArgoCd(inside.db, {
      id: newId(),
      organization_id: organizationId,
      cluster_id: clusterId,
      url,
      token: await inside.vault.seal(inside.db, organizationId, tokenPlace(clusterId), token),
      ...findingOf(found),
    });
    const after = (await queries.findByCluster(inside.db, cluster, clusterId))!;
    await auditArgoCd(inside, cluster, before ? 'UPDATE' : 'CREATE', 'ARGOCD_CONFIGURATION', {
      before: before && toArgoCdView(before),
      after: toArgoCdView(after),
    });
    inside.afterCommit(() => inside.notify(ARGO_CD));
    return toArgoCdView(after);
  });
}

/** Deletes a cluster's Argo CD with the mappings of its destinations and the apps read from it. The apps go on running. */
export async function deleteArgoCd(context: Context, needs: ArgoCdNeeds, cluster: ClusterTarget): Promise<void> {
  const row = await queries.lockByCluster(context.db, cluster, cluster.id);
  if (!row) throw notFound('Argo CD of the cluster');
  await needs.forgetApps(context, cluster, row.id);
  await queries.deleteArgoCd(context.db, cluster, row.id);
  await auditArgoCd(context, cluster, 'DELETE', 'ARGOCD_CONFIGURATION', { before: toArgoCdView(row) });
}

/**
 * Checks the Argo CD that a body names: whether it is one, accepts the token and shows its apps. The result is stored only for the
 * configuration in force.
 */
export async function checkArgoCd(
  context: Context & { signal: AbortSignal },
  cluster: ClusterTarget,
  input: ArgoCdInput,
) {
  const { url, token, present } = await accessOf(context, cluster, input);
  const found = await openArgoCd(
    clientFor(context),
    { organizationId: cluster.organizationId, url, token },
    context.signal,
  ).check();
  // Of the configuration in force the answer is news.
  if (present?.url === url && present.token === token)
    await queries.noteFinding(context.db, cluster, present.id, findingOf(found));
  return found.status === 'connected'
    ? { status: found.status, app_count: found.applications }
    : { status: found.status, reason: found.reason, message: found.message };
}

const findingOf = (found: Connection): queries.Finding =>
  found.status === 'connected'
    ? { status: found.status, reason: null, message: null }
    : { status: found.status, reason: found.reason, message: found.message };

/**
 * Returns the address and token that a body names. A token goes only to the address that it was given for: naming another address does not
 * reveal it.
 */
async function accessOf(context: Context, cluster: ClusterTarget, input: ArgoCdInput) {
  const url = input.argocd_url;
  clientFor(context).checkUrl(url, 'argocd_url');
  const present = await findAccessOf(context, cluster, { clusterId: cluster.id });
  if (input.argocd_token !== MASK) return { url, token: input.argocd_token, present };
  if (!present) throw invalidField('argocd_token', 'is required: the cluster has no Argo CD whose token could be kept');
  if (withoutSlash(present.url) !== withoutSlash(url))
    throw invalidField('argocd_token', 'is required when argocd_url changes: it would be sent to another address');
  return { url, token: present.token, present };
}

/** Maps a destination of a cluster's Argo CD to a cluster of the organization; its apps are services of that cluster from now on. */
export async function saveMapping(context: Context, organizationId: string, input: ArgoCdMappingInput) {
  const agent = await findAgent(context, organizationId, input.agent_cluster_id, 'agent_cluster_id');
  const cluster = await clusterTarget.find(context.db, input.cluster_id, [organizationId], { lock: false });
  if (!cluster) throw invalidField('cluster_id', 'names no cluster of this organization');
  const url = withoutSlash(input.argocd_cluster_url);
  const before = await queries.findMapping(context.db, { organizationId }, agent.row.id, url);
  const mapping = { organization_id: organizationId, argo_cd_id: agent.row.id, url, cluster_id: cluster.id };
  await queries.saveMapping(context.db, mapping);
  await queries.readSoon(context.db, { organizationId }, agent.row.id);
  const view = toMappingView(agent.cluster.id, url, cluster.id);
  await auditArgoCd(context, agent.cluster, before ? 'UPDATE' : 'CREATE', 'ARGOCD_CLUSTER_MAPPING', {
    before: before && toMappingView(agent.cluster.id, url, before.cluster_id),
    after: view,
  });
  context.afterCommit(() => context.notify(ARGO_CD));
  return view;
}

/** Removes the mapping of a destination to a cluster: its apps are forgotten and go on running. Throws 404 if it was not mapped. */
export async function deleteMapping(
  context: Context,
  needs: ArgoCdNeeds,
  organizationId: string,
  query: { agentClusterId: string; argocdClusterUrl: string },
): Promise<void> {
  const agent = await findAgent(context, organizationId, query.agentClusterId, 'agentClusterId');
  const url = withoutSlash(query.argocdClusterUrl);
  const before = await queries.findMapping(context.db, { organizationId }, agent.row.id, url);
  if (!before) throw notFound('Mapping');
  await needs.forgetApps(context, { organizationId }, agent.row.id, url);
  await queries.deleteMapping(context.db, { organizationId }, agent.row.id, url);
  await queries.readSoon(context.db, { organizationId }, agent.row.id);
  await auditArgoCd(context, agent.cluster, 'DELETE', 'ARGOCD_CLUSTER_MAPPING', {
    before: toMappingView(agent.cluster.id, url, before.cluster_id),
  });
}

const toMappingView = (agentClusterId: string, url: string, clusterId: string) => ({
  agent_cluster_id: agentClusterId,
  argocd_cluster_url: url,
  cluster_id: clusterId,
});

/** Returns a cluster and its Argo CD, whose row is locked. */
async function findAgent(context: Context, organizationId: string, clusterId: string, field: string) {
  const cluster = await clusterTarget.find(context.db, clusterId, [organizationId], { lock: false });
  if (!cluster) throw invalidField(field, 'names no cluster of this organization');
  const row = await queries.lockByCluster(context.db, { organizationId }, clusterId);
  if (!row) throw invalidField(field, `names the cluster ${cluster.name}, which has no Argo CD: configure it first`);
  return { cluster, row };
}

const auditArgoCd = (
  context: Context,
  cluster: { id: string; name: string; organizationId: string },
  type: EventType,
  sub: SubTargetType,
  states: { before?: unknown; after?: unknown },
) =>
  audit(context, {
    organizationId: cluster.organizationId,
    type,
    target: { type: 'CLUSTER', id: cluster.id, name: cluster.name, sub },
    ...states,
  });
