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
    const last = snapshot.rollbackTo ? releasedThen(resolved) : lastClean(facts.get(service.serviceId));
    const planned = kind.plan(service, snapshot.action, resolved.commit ?? null, last);
    stage.services.push(snapshot.rollbackTo ? { ...planned, reason: whyBack(snapshot.rollbackTo, planned) } : planned);
  }
  const backwards = snapshot.action === 'STOP' || snapshot.action === 'DELETE' || snapshot.action === 'UNINSTALL';
  const ordered = [...stages.values()].sort((a, b) => (backwards ? b.position - a.position : a.position - b.position));
  return { format: FORMAT, action: snapshot.action, stages: ordered };
}

/** A service whose work was cut off by force skips nothing (engine.md, *The queue*). */
const lastClean = (facts: { release: LastRelease | null; dirty: boolean } | undefined): LastRelease | null =>
  facts && !facts.dirty ? facts.release : null;

/** What a rollback goes back to. Where its image is no longer kept it is built again, of the same commit. */
const releasedThen = ({ image, buildKey, commit }: ResolvedService): LastRelease | null =>
  image ? { image, buildKey: buildKey ?? null, commit: commit ?? null } : null;

const whyBack = ({ number }: { number: number }, planned: PlannedService): string =>
  planned.image
    ? `back to execution ${number}, whose image is kept`
    : `back to execution ${number}, whose image is no longer kept: it is built again of the same commit`;
