import { internal } from '#kernel/errors.ts';
import type { Action } from '#platform/access/actions.ts';
import {
  ENVIRONMENT_MODES,
  grantIn,
  isLimited,
  permits,
  type Location,
  type Places,
  type Principal,
} from '#platform/access/principal.ts';
import { sql, type Database } from '#platform/database/index.ts';

/**
 * The principal with the places of an organization, where their rights differ from place to place: lists answer only rows of places that
 * role and policy permit, each asked for by itself.
 */
export async function withPlaces(db: Database, principal: Principal, organizationId: string): Promise<Principal> {
  const grant = grantIn(principal, organizationId);
  if (!grant || !isLimited(grant)) return principal;
  const places = await loadPlaces(db, organizationId);
  return { ...principal, grants: principal.grants.map((one) => (one === grant ? { ...grant, places } : one)) };
}

async function loadPlaces(db: Database, organizationId: string): Promise<Places> {
  const { rows } = await sql<{ kind: string; id: string; project_id: string; mode: string; cluster_id: string }>`
    select 'project' as kind, id, null as project_id, null as mode, null as cluster_id from project where organization_id = ${organizationId}
    union all select 'environment', id, project_id, mode, cluster_id from environment where organization_id = ${organizationId}
    union all select 'cluster', id, null, null, null from cluster where organization_id = ${organizationId}`.execute(
    db,
  );
  const of = (kind: string) => rows.filter((row) => row.kind === kind);
  return {
    projects: of('project').map(({ id }) => ({ organizationId, projectId: id })),
    environments: of('environment').map((row) => ({
      organizationId,
      projectId: row.project_id,
      environmentId: row.id,
      mode: row.mode,
      clusterId: row.cluster_id,
    })),
    clusters: of('cluster').map(({ id }) => ({ organizationId, clusterId: id })),
  };
}

/** Decisions of a policy take time: each is made once in a request. */
const decided = new WeakMap<Places, Map<string, Location[]>>();

/** Places where the caller may do the action; null if they may do it everywhere. */
function visible<K extends keyof Places>(
  principal: Principal,
  organizationId: string,
  kind: K,
  action: Action,
): Places[K] | null {
  const grant = grantIn(principal, organizationId);
  if (grant && !isLimited(grant)) return null;
  const places = grant?.places;
  // Without the flag the places are not loaded, and the list could show rows that the caller may not see.
  if (!places) throw internal(`The route answers rows of several places: it must say so by filtersRows.`);
  const known = decided.get(places) ?? new Map<string, Location[]>();
  decided.set(places, known);
  const key = `${kind} ${action}`;
  const found = known.get(key) ?? places[kind].filter((at) => permits(principal, action, at));
  known.set(key, found);
  return found as Places[K];
}

/** Ids of the environments, of one project or all, that the caller may see, null for all. */
export const visibleEnvironmentIds = (
  principal: Principal,
  organizationId: string,
  action: Action,
  projectId?: string,
) =>
  visible(principal, organizationId, 'environments', action)
    ?.filter((at) => projectId === undefined || at.projectId === projectId)
    .map((at) => at.environmentId) ?? null;

/** Ids of the projects that the caller may see, null for all. */
export const visibleProjectIds = (principal: Principal, organizationId: string, action: Action) =>
  visible(principal, organizationId, 'projects', action)?.map((at) => at.projectId) ?? null;

/** Ids of the clusters that the caller may see, null for all. */
export const visibleClusterIds = (principal: Principal, organizationId: string, action: Action) =>
  visible(principal, organizationId, 'clusters', action)?.map((at) => at.clusterId) ?? null;

/** Condition on `environment` in lists; `action` is what reading a row by itself takes. */
export const visibleEnvironments = (
  principal: Principal,
  organizationId: string,
  action: Action = 'environment.read',
) => {
  const ids = visibleEnvironmentIds(principal, organizationId, action);
  return ids ? sql<boolean>`environment.id = any(${ids}::uuid[])` : sql<boolean>`true`;
};

/** Condition on `project` in lists. */
export const visibleProjects = (principal: Principal, organizationId: string) => {
  const ids = visibleProjectIds(principal, organizationId, 'project.read');
  return ids ? sql<boolean>`project.id = any(${ids}::uuid[])` : sql<boolean>`true`;
};

/** Condition on `cluster` in lists. */
export const visibleClusters = (principal: Principal, organizationId: string) => {
  const ids = visibleClusterIds(principal, organizationId, 'cluster.read');
  return ids ? sql<boolean>`cluster.id = any(${ids}::uuid[])` : sql<boolean>`true`;
};

/**
 * Returns whether the caller may read something of every mode that a project can have: then also of environments that are gone, whose mode is not
 * known. A policy may tell environments apart by more than their mode.
 */
export const seesGoneEnvironments = (principal: Principal, at: Location & { projectId: string }, action: Action) =>
  grantIn(principal, at.organizationId)?.policy === undefined &&
  ENVIRONMENT_MODES.every((mode) => permits(principal, action, { ...at, mode }));

/** Actions on a place that stand for reading what is below it, which is asked about row by row. */
const CONTAINERS: readonly Action[] = ['organization.read', 'project.read', 'cluster.read', 'event.read'];

/**
 * Returns whether a policy that says nothing of the place itself lets the caller list what is below: always for the organization, else if it allows
 * one of the environments there.
 */
export function mayListBelow(principal: Principal, action: Action, at: Location): boolean {
  if (!CONTAINERS.includes(action)) return false;
  if (!at.projectId && !at.clusterId) return true;
  const below = visible(principal, at.organizationId, 'environments', 'environment.read');
  return (below ?? []).some((one) => (at.projectId ? one.projectId === at.projectId : one.clusterId === at.clusterId));
}
