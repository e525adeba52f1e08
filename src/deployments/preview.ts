import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { loadFacts } from '#deployments/executor/facts.ts';
import { resolve, type Resolving } from '#deployments/executor/resolve.ts';
import type { Plan, Resolution, ServiceSnapshot, Snapshot } from '#deployments/model/snapshot.ts';
import { changesOf, compareShared, type ServiceChanges } from '#deployments/planner/changes.ts';
import { makePlan } from '#deployments/planner/plan.ts';
import type { FrozenVariable } from '#deployments/model/variables.ts';
import type { Handle } from '#runtimes/runtime.ts';

/** Preview of a request that would be made now. */
export interface DeploymentPreview {
  plan: Plan;
  /** Differences from the last release, by service; of deploys only. */
  changes: Map<string, ServiceChanges>;
  /** Handles of the services that are deployed. */
  handles: Map<string, Handle>;
  /** Runtime and machine of the environment's cluster. */
  cluster: { runtime: string; nodeId: string | null } | undefined;
}

/**
 * Plans a snapshot without storing or changing anything, by the same functions that a deployment uses. `resolution` is given for a rollback;
 * else sources are asked for their commits. Call it outside any transaction.
 */
export async function previewDeployment(
  db: Database,
  scope: Scope,
  parts: Resolving,
  request: { snapshot: Snapshot; resolution: Resolution | null },
  signal: AbortSignal,
): Promise<DeploymentPreview> {
  const { snapshot } = request;
  const ids = snapshot.services.map((service) => service.serviceId);
  const facts = await loadFacts(db, scope, ids);
  const resolution = request.resolution ?? (await resolve(parts, snapshot, facts, signal));
  const plan = makePlan(snapshot, resolution, facts, parts.kinds);
  const changes = new Map<string, ServiceChanges>();
  const deployed = [...facts].flatMap(([id, { handle }]) => (handle ? [[id, handle] as const] : []));
  const handles = new Map(deployed);
  const cluster = await findCluster(db, scope, snapshot.environmentId);
  if (snapshot.action !== 'DEPLOY') return { plan, changes, handles, cluster };
  const released = await listReleased(db, scope, ids);
  const byDeployment = Map.groupBy(snapshot.services, ({ serviceId }) => released.get(serviceId)?.deploymentId);
  for (const [deploymentId, services] of byDeployment) {
    // One after the other: each may hold what thousands of services see.
    const shared = compareShared(await findShared(db, scope, deploymentId), snapshot.shared ?? []);
    for (const service of services) {
      const { serviceId } = service;
      const last = {
        release: facts.get(serviceId)?.release ?? null,
        snapshot: released.get(serviceId)?.snapshot ?? null,
      };
      changes.set(serviceId, changesOf(service, resolution.services[serviceId] ?? {}, last, shared));
    }
  }
  return { plan, changes, handles, cluster };
}

/** Returns the snapshots of the services' last releases, and the deployments that made them. */
async function listReleased(db: Database, scope: Scope, serviceIds: string[]) {
  const rows = await db
    .selectFrom('service')
    .innerJoin('release', 'release.id', 'service.release_id')
    .select(['service.id', 'release.snapshot', 'release.deployment_id'])
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.id', '=', sql<string>`any(${serviceIds})`)
    .execute();
  return new Map(
    rows.map((row) => [row.id, { snapshot: row.snapshot as ServiceSnapshot, deploymentId: row.deployment_id }]),
  );
}

const findCluster = (db: Database, scope: Scope, environmentId: string) =>
  db
    .selectFrom('environment')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .select(['cluster.runtime', 'cluster.node_id as nodeId'])
    .where('environment.organization_id', '=', scope.organizationId)
    .where('environment.id', '=', environmentId)
    .executeTakeFirst();

/** Variables that all services of a deployment saw; none without one. */
async function findShared(db: Database, scope: Scope, deploymentId: string | undefined): Promise<FrozenVariable[]> {
  if (deploymentId === undefined) return [];
  const row = await db
    .selectFrom('deployment')
    .select(sql<FrozenVariable[] | null>`snapshot -> 'shared'`.as('shared'))
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', deploymentId)
    .executeTakeFirst();
  return row?.shared ?? [];
}
