import { setTimeout as sleep } from 'node:timers/promises';
import {
  RuntimeError,
  throwIfCancelled,
  type Handle,
  type RuntimeContext,
  type WorkloadSpec,
} from '#runtimes/runtime.ts';
import { apply, find, type Cluster } from './cluster.ts';
import type { ClusterObject, DeploymentObject, FoundDeployment } from './kinds.ts';
import { ANNOTATION, LABEL, identityLabels, namespaceOf } from './labels.ts';
import { extensionsOf } from './extensions.ts';
import { applyTo, changeOneFenced, readAhead, removeFenced, type Fence, type ObjectsAhead } from './fence.ts';
import { eventScalerOf } from './keda.ts';
import { companionsOf, releaseOf } from './objects.ts';
import { environmentPolicy } from './policies.ts';
import { findMade } from './made.ts';
import { keepService, madeBefore, prepare, removeMade } from './publish.ts';
import { changeRecord, recordName, requireNewest, type KeptRelease, type ServiceRecord } from './record/index.ts';
import { findRelease } from './record/in-cluster.ts';
import { isMarked } from './record/marks.ts';
import { AlteredRecord } from './record/seal.ts';
import { whyHostsUnsecured } from './routing.ts';
import {
  applyAutoscaler,
  boundsOf,
  handOverReplicas,
  removeAutoscalers,
  whyNotScaled,
  type Bounds,
} from './scaling.ts';

/** Milliseconds that a namespace under deletion is waited for. */
const NAMESPACE_MS = 60_000;
const LOOK_MS = 500;

const handleOf = (spec: Pick<WorkloadSpec, 'identity' | 'hostname'>): Handle => ({
  format: 1,
  runtime: 'kubernetes',
  identity: spec.identity,
  data: { hostname: spec.hostname },
});

/** Takes a release over: the cluster rolls it out by itself (`Runtime.submit`). */
export async function submitRelease(cluster: Cluster, spec: WorkloadSpec, context: RuntimeContext): Promise<Handle> {
  throwIfCancelled(context.signal);
  const extensions = await extensionsOf(cluster);
  const events = await eventScalerOf(spec, extensions);
  const companions = [...companionsOf(spec, extensions), ...(events?.authentications ?? [])];
  const release = releaseOf(spec, companions, events?.scaler);
  for (const hint of [whyNotScaled(spec, extensions.hasMetrics), whyHostsUnsecured(spec, extensions)])
    if (hint !== null) context.log(hint);
  const namespace = await ensureNamespace(cluster, spec.identity, context.signal);
  const { record, ahead } = await takeOver(cluster, spec, release, isMarked(namespace, spec.identity), context);
  throwIfCancelled(context.signal);
  await apply(cluster, environmentPolicy(spec.identity));
  const fence = { identity: spec.identity, context, ahead };
  await prepare(cluster, fence, record, companions);
  if (!record.candidate)
    await removeMade(
      cluster,
      fence,
      record.made!.filter((name) => !release.objects!.includes(name)),
    );
  await applyRelease(cluster, fence, record.candidate ?? record.serving ?? release);
  return handleOf(spec);
}

/**
 * Writes a release into the record of its service as its candidate, unless it serves already. Returns the record, and what was read before
 * it was written of the objects that are changed next.
 */
async function takeOver(
  cluster: Cluster,
  { identity, hostname }: WorkloadSpec,
  release: KeptRelease,
  isMarked: boolean,
  context: RuntimeContext,
): Promise<{ record: ServiceRecord; ahead: ObjectsAhead }> {
  let found: ServiceRecord | null = null;
  let written: ServiceRecord | null = null;
  let ahead: ObjectsAhead = new Map();
  const replacesAltered = async () => {
    found = await recordInCluster(cluster, identity, hostname);
    requireNewest(found, identity.generation);
    context.log(`${new AlteredRecord(recordName(identity.serviceId)).message} This deployment writes it anew.`);
  };
  const taken = async (read: ServiceRecord | null): Promise<ServiceRecord> => {
    const present = read ?? found;
    const serving = present?.serving ?? null;
    const isStopped = present?.isStopped ?? false;
    const isServing = serving !== null && !isStopped && isSame(serving, release);
    const made = present ? (present.made ?? madeBefore(present.hostname)) : [];
    if (serving) ahead = await readAhead(cluster, changedAtOnce(release, hostname));
    written = {
      generation: identity.generation,
      hostname,
      serving,
      candidate: isServing ? null : release,
      isStopped,
      // What goes once the release serves stays here until then: the process may end in between.
      made: [...new Set([...made, ...release.objects!])],
    };
    return written;
  };
  const record = await changeRecord(cluster, identity, taken, { replacesAltered, isMarked });
  // A record that was so already was read before the objects, and not written since.
  if (record !== written) ahead.clear();
  return { record: (await keepService(cluster, identity, record))!, ahead };
}

/** Returns the objects of a release that are changed while the release before serves, whatever it is. */
const changedAtOnce = ({ deployment, autoscaler, manifests = [] }: KeptRelease, hostname: string): ClusterObject[] => [
  deployment,
  ...(autoscaler ? [autoscaler] : []),
  ...manifests.filter(({ kind, metadata }) => kind === 'Service' && metadata.name === hostname),
];

/** Returns what the cluster itself tells of a service whose record was altered. */
async function recordInCluster(
  cluster: Cluster,
  identity: WorkloadSpec['identity'],
  hostname: string,
): Promise<ServiceRecord> {
  const [made, found] = await Promise.all([findMade(cluster, identity), findRelease(cluster, identity, hostname)]);
  const serving = found && { ...found.release, objects: made };
  const { isStopped } = found ?? { isStopped: false };
  return { generation: serving?.generation ?? 0, hostname, serving, candidate: null, isStopped, made };
}

/** Compares releases but for a restart, which a repeated submission must not undo. */
function isSame(serving: KeptRelease, release: KeptRelease): boolean {
  const asked = serving.deployment.spec.template.metadata.annotations[ANNOTATION.asked];
  const deployment = asked === undefined ? release.deployment : withRestart(release.deployment, Number(asked));
  const shapeOf = (one: KeptRelease) => JSON.stringify([one.generation, one.deployment, one.autoscaler]);
  return shapeOf(serving) === shapeOf({ ...release, deployment });
}

/** Returns the Deployment with new processes for a deployment that asks for a restart. */
export function withRestart(deployment: DeploymentObject, asked: number): DeploymentObject {
  const copy = structuredClone(deployment);
  copy.spec.template.metadata.annotations[ANNOTATION.asked] = String(asked);
  return copy;
}

/** Returns the release without pods. */
export const stopped = ({ generation, deployment }: KeptRelease): KeptRelease => ({
  generation,
  deployment: { ...deployment, spec: { ...deployment.spec, replicas: 0 } },
});

/** Applies what a record keeps of a release. */
export async function applyRelease(cluster: Cluster, fence: Fence, release: KeptRelease): Promise<void> {
  // An autoscaler that goes must not change the number any more, and one that comes finds the Deployment.
  if (!release.autoscaler) await applyAutoscaler(cluster, fence, release);
  await applyDeployment(cluster, fence, release.deployment, boundsOf(release));
  if (release.autoscaler) await applyAutoscaler(cluster, fence, release);
}

/** Applies a Deployment unless a later deployment or attempt was taken over. */
export const applyDeployment = (
  cluster: Cluster,
  fence: Fence,
  deployment: DeploymentObject,
  bounds: Bounds | null = null,
): Promise<FoundDeployment> =>
  changeOneFenced<FoundDeployment>(cluster, fence, deployment, async (present) => {
    if (!bounds) return applyTo(cluster, deployment, present);
    const { spec } = deployment;
    const scaled =
      present ??
      (await applyTo<FoundDeployment>(cluster, { ...deployment, spec: { ...spec, replicas: bounds.min } }, null));
    return applyTo(cluster, deployment, await handOverReplicas(cluster, deployment, scaled, bounds));
  });

/** Returns the namespace of an environment, created if there is none; one that is being deleted is waited for. */
export async function ensureNamespace(
  cluster: Cluster,
  identity: WorkloadSpec['identity'],
  signal: AbortSignal,
): Promise<ClusterObject> {
  const { [LABEL.service]: _service, ...labels } = identityLabels(identity);
  const name = namespaceOf(identity);
  for (const end = Date.now() + NAMESPACE_MS; ; await sleep(LOOK_MS, undefined, { signal })) {
    const present = await find(cluster, 'Namespace', undefined, name);
    if (present && present.metadata.labels?.[LABEL.installation] !== identity.installation)
      throw new RuntimeError('refused', `The namespace ${name} is there and not ours: remove or rename it.`);
    if (present && !present.metadata.deletionTimestamp) return present;
    if (!present) {
      return apply(cluster, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
    }
    if (Date.now() > end) throw new RuntimeError('failed', `The namespace ${name} is still being deleted.`);
  }
}

/** Removes the Deployment of a release that never served, with its autoscaler. */
export async function removeRollout(cluster: Cluster, fence: Fence, hostname: string): Promise<void> {
  await removeAutoscalers(cluster, fence, hostname);
  await removeFenced(cluster, fence, [{ kind: 'Deployment', name: hostname }]);
}
