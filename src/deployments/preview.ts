import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { loadFacts } from '#deployments/executor/facts.ts';
import { resolve, type Resolving } from '#deployments/executor/resolve.ts';
import type { Plan, Resolution, ServiceSnapshot, Snapshot } from '#deployments/model/snapshot.ts';
import { changesOf, type ServiceChanges } from '#deployments/planner/changes.ts';
import { makePlan } from '#deployments/planner/plan.ts';

/** What a request would do if it were made now. */
export interface DeploymentPreview {
  plan: Plan;
  /** What differs from the last release, by service; of deploys only. */
  changes: Map<string, ServiceChanges>;
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
  if (snapshot.action !== 'DEPLOY') return { plan, changes };
  const released = await listReleasedSnapshots(db, scope, ids);
  for (const service of snapshot.services) {
    const { serviceId } = service;
    const last = {
      release: facts.get(serviceId)?.release ?? null,
      snapshot: released.get(serviceId) ?? null,
    };
    changes.set(serviceId, changesOf(service, resolution.services[serviceId] ?? {}, last));
  }
  return { plan, changes };
}

/** What the services' last releases were made of. */
async function listReleasedSnapshots(
  db: Database,
  scope: Scope,
  serviceIds: string[],
): Promise<Map<string, ServiceSnapshot>> {
  const rows = await db
    .selectFrom('service')
    .innerJoin('release', 'release.id', 'service.release_id')
    .select(['service.id', 'release.snapshot'])
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.id', '=', sql<string>`any(${serviceIds})`)
    .execute();
  return new Map(rows.map((row) => [row.id, row.snapshot as ServiceSnapshot]));
}
