import type { DeployableKind } from '#deployments/model/kind.ts';
import {
  FORMAT,
  type LastRelease,
  type Plan,
  type PlannedService,
  type PlannedStage,
  type Resolution,
  type ResolvedService,
  type Snapshot,
} from '#deployments/model/snapshot.ts';

/**
 * The plan of a snapshot: stages in order (backwards for what takes down), in each the services with their steps. Pure: the same input
 * gives the same plan, and nothing is changed (engine.md, *Snapshot, resolution, plan*).
 */
export function makePlan(
  snapshot: Snapshot,
  resolution: Resolution,
  facts: ReadonlyMap<string, { release: LastRelease | null; dirty: boolean }>,
  kinds: Record<string, DeployableKind>,
): Plan {
  const stages = new Map<string, PlannedStage>();
  for (const service of snapshot.services) {
    const kind = kinds[service.kind];
    if (!kind) throw new Error(`Services of kind ${service.kind} cannot be deployed by this release.`);
    const stage = stages.get(service.stage.id) ?? { ...service.stage, services: [] };
    stages.set(service.stage.id, stage);
    const resolved = resolution.services[service.serviceId] ?? {};
    const last = lastOf(snapshot, resolved, facts.get(service.serviceId));
    const planned = kind.plan(service, snapshot.action, resolved, last);
    stage.services.push(snapshot.rollbackTo ? { ...planned, reason: whyBack(snapshot.rollbackTo, planned) } : planned);
  }
  const backwards = snapshot.action === 'STOP' || snapshot.action === 'DELETE' || snapshot.action === 'UNINSTALL';
  const ordered = [...stages.values()].sort((a, b) => (backwards ? b.position - a.position : a.position - b.position));
  return { format: FORMAT, action: snapshot.action, stages: ordered };
}

/** What a kind may build on. A service whose work was cut off by force skips nothing (engine.md, *The queue*). */
function lastOf(
  snapshot: Snapshot,
  resolved: ResolvedService,
  facts: { release: LastRelease | null; dirty: boolean } | undefined,
): LastRelease | null {
  if (snapshot.rollbackTo) return releasedThen(resolved);
  if (!facts || (facts.dirty && snapshot.action === 'DEPLOY')) return null;
  return facts.release;
}

/** What a rollback goes back to. Where its image is no longer kept it is built again, of the same commit. */
const releasedThen = ({ image, ...resolved }: ResolvedService): LastRelease | null =>
  image
    ? {
        image,
        buildKey: resolved.buildKey ?? null,
        commit: resolved.commit ?? null,
        valuesCommit: resolved.valuesCommit ?? null,
        imageSource: resolved.imageSource ?? null,
      }
    : null;

function whyBack({ number }: { number: number }, planned: PlannedService): string {
  if (planned.image) return `back to execution ${number}, whose image is kept`;
  return planned.steps.includes('BUILD')
    ? `back to execution ${number}, whose image is no longer kept: it is built again of the same commit`
    : `back to execution ${number}`;
}
