import { badRequest, invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { isFirstOrganization } from '#platform/installation/index.ts';
import type { Settings } from '#platform/settings/index.ts';
import { SETTINGS } from '#platform/settings/schema.ts';
import { findRunPlace } from '#resources/cluster/queries.ts';

type Parts = Pick<Context, 'db' | 'settings'>;

/** Runtime and machine on which something of an organization is to run. */
export interface RunPlace {
  runtime: string;
  /** Machine of a host or docker cluster. */
  node_id: string | null;
}

interface Refusal {
  field: 'runtime' | 'node_id';
  message: string;
}

/** Returns why an organization may not use a runtime or machine, or null if it may. The operator's settings decide. */
export const placeRefusal = async (
  { db, settings }: Parts,
  organizationId: string,
  place: RunPlace,
): Promise<Refusal | null> =>
  refusalBySettings(settings, organizationId, await isFirstOrganization(db, organizationId), place);

function refusalBySettings(
  { organizationRuntimes: runtimes, organizationNodes: nodes }: Settings,
  organizationId: string,
  isFirst: boolean,
  { runtime, node_id: node }: RunPlace,
): Refusal | null {
  if (!runtimes.allows(organizationId, isFirst, runtime))
    return {
      field: 'runtime',
      message: `this organization may not use the runtime ${runtime}; allowed: ${runtimes.valuesOf(organizationId, isFirst).join(', ') || 'none'}. The operator sets it (${SETTINGS.organizationRuntimes.name})`,
    };
  if (node !== null && !nodes.allows(organizationId, isFirst, node))
    return {
      field: 'node_id',
      message: `this organization may not use the machine ${node}. The operator sets it (${SETTINGS.organizationNodes.name})`,
    };
  return null;
}

/** Throws 400 naming the field if the organization may not use a runtime or machine. */
export async function refusePlace(parts: Parts, organizationId: string, place: RunPlace): Promise<void> {
  const refusal = await placeRefusal(parts, organizationId, place);
  if (refusal) throw invalidField(refusal.field, refusal.message);
}

/** Throws an error for people if the organization may no longer use its cluster's runtime or machine: settings change while work waits. */
export async function refuseCluster({ db, settings }: Parts, organizationId: string, clusterId: string): Promise<void> {
  const [cluster] = await findRunPlace(db, organizationId, clusterId);
  const refusal = cluster && refusalBySettings(settings, organizationId, cluster.is_first, cluster);
  if (refusal) throw badRequest(`Cluster ${cluster.name}: ${refusal.message}.`);
}

/** Filters a list of machines for those that the organization may use. */
export async function allowedNodes<N extends { id: string }>(
  { db, settings }: Parts,
  organizationId: string,
  nodes: N[],
): Promise<N[]> {
  const isFirst = await isFirstOrganization(db, organizationId);
  return nodes.filter(({ id }) => settings.organizationNodes.allows(organizationId, isFirst, id));
}
