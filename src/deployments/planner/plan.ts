import type { DeployableKind } from '#deployments/model/kind.ts';
import {
  FORMAT,
  type LastRelease,
  type Plan,
  type PlannedStage,
  type Resolution,
  type Snapshot,
} from '#deployments/model/snapshot.ts';

/**
 * The plan of a snapshot: stages in order (backwards for what takes down), in each the services with their steps. Pure: the same input
 * gives the same plan, and nothing is changed (engine.md, *Snapshot, resolution, plan*).
 */
export function makePlan(
  snapshot: Snapshot,
  resolution: Resolution,
  releases: Record<string, LastRelease>,
  kinds: Record<string, DeployableKind>,
): Plan {
  const stages = new Map<string, PlannedStage>();
  for (const service of snapshot.services) {
    const kind = kinds[service.kind];
    if (!kind) throw new Error(`Services of kind ${service.kind} cannot be deployed by this release.`);
    const stage = stages.get(service.stage.id) ?? { ...service.stage, services: [] };
    stages.set(service.stage.id, stage);
    const commit = resolution.services[service.serviceId]?.commit ?? null;
    stage.services.push(kind.plan(service, snapshot.action, commit, releases[service.serviceId] ?? null));
  }
  const backwards = snapshot.action === 'STOP' || snapshot.action === 'DELETE' || snapshot.action === 'UNINSTALL';
  const ordered = [...stages.values()].sort((a, b) => (backwards ? b.position - a.position : a.position - b.position));
  return { format: FORMAT, action: snapshot.action, stages: ordered };
}
