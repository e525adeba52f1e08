import type { DeployableKind } from '#deployments/model/kind.ts';
import {
  FORMAT,
  type Foreseen,
  type LastRelease,
  type Plan,
  type PlannedService,
  type PlannedStage,
  type Resolution,
  type ResolvedService,
  type ServiceSnapshot,
  type Snapshot,
} from '#deployments/model/snapshot.ts';

/**
 * Plans a snapshot: stages in order (backwards for removals and stops), in each the services with their steps. Pure: the same input gives
 * the same plan, and nothing is changed (docs/contributing/engine.md, *Snapshot, resolution, plan*).
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
    const stage = stages.get(service.stage.id) ?? { ...service.stage, services: [] };
    stages.set(service.stage.id, stage);
    const resolved = resolution.services[service.serviceId] ?? {};
    const failure = kind ? resolved.failure : unknownKind(service);
    if (!kind || failure) {
      stage.services.push(failedService(service, failure!));
      continue;
    }
    const last = lastOf(snapshot, resolved, facts.get(service.serviceId));
    const planned = withTurns(kind.plan(service, snapshot.action, resolved, last, snapshot.shared ?? []));
    stage.services.push(snapshot.rollbackTo ? { ...planned, reason: whyBack(snapshot.rollbackTo, planned) } : planned);
  }
  const backwards = snapshot.action === 'STOP' || snapshot.action === 'DELETE' || snapshot.action === 'UNINSTALL';
  const ordered = [...stages.values()].sort((a, b) => (backwards ? b.position - a.position : a.position - b.position));
  return { format: FORMAT, action: snapshot.action, stages: ordered };
}

/** Adds a step in which a build waits for its turn: its time does not count as the build's. */
const withTurns = (planned: PlannedService): PlannedService => ({
  ...planned,
  steps: planned.steps.flatMap((step) => (step === 'BUILD' ? (['BUILD_QUEUEING', 'BUILD'] as const) : [step])),
});

const unknownKind = ({ kind }: ServiceSnapshot): Foreseen => ({
  code: 'FAILED',
  message: `Services of kind ${kind} cannot be deployed by this release.`,
});

/** Returns a service without steps, with the reason of its failure. */
const failedService = ({ serviceId, name, kind }: ServiceSnapshot, failure: Foreseen): PlannedService => ({
  serviceId,
  name,
  kind,
  steps: [],
  reason: failure.message,
  buildKey: null,
  image: null,
  rollout: 'NONE',
  failure,
});

/**
 * Returns the release that a kind may build on. A service whose work was cut off by force skips nothing (docs/contributing/engine.md, *The
 * queue*).
 */
function lastOf(
  snapshot: Snapshot,
  resolved: ResolvedService,
  facts: { release: LastRelease | null; dirty: boolean } | undefined,
): LastRelease | null {
  if (snapshot.rollbackTo) return releasedThen(resolved);
  if (!facts || (facts.dirty && snapshot.action === 'DEPLOY')) return null;
  return facts.release;
}

/** Returns the release that a rollback restores. Null if its image is no longer kept: it is built again, of the same commit. */
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
