import { setTimeout as sleep } from 'node:timers/promises';
import {
  RuntimeError,
  throwIfCancelled,
  type Handle,
  type RuntimeContext,
  type WorkloadSpec,
} from '#runtimes/runtime.ts';
import { apply, find, list, remove, type Cluster } from './cluster.ts';
import { isConflict } from './errors.ts';
import type { DeploymentObject, FoundDeployment } from './kinds.ts';
import { ANNOTATION, LABEL, identityLabels, namespaceOf, ofService } from './labels.ts';
import { extensionsOf, isThere } from './extensions.ts';
import { eventScalerOf } from './keda.ts';
import { companionsOf, releaseOf } from './objects.ts';
import { environmentPolicy } from './policies.ts';
import { changeRecord, readRecord, requireNewest, type KeptRelease } from './record.ts';
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
/** Number of times that a Deployment is applied again because its status changed meanwhile. */
const TRIES = 50;

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
  await ensureNamespace(cluster, spec, context.signal);
  let unwanted: string[] = [];
  const record = await changeRecord(cluster, spec.identity, (present) => {
    const serving = present?.serving ?? null;
    const isStopped = present?.isStopped ?? false;
    const isServing = serving !== null && !isStopped && isSame(serving, release);
    const made = present ? (present.made ?? madeBefore(present.hostname)) : [];
    unwanted = made.filter((name) => !release.objects!.includes(name));
    return {
      generation: spec.identity.generation,
      hostname: spec.hostname,
      serving,
      candidate: isServing ? null : release,
      isStopped,
      // What is removed below stays here until the release serves: the process may end in between.
      made: [...unwanted, ...release.objects!],
    };
  });
  throwIfCancelled(context.signal);
  for (const object of [environmentPolicy(spec.identity), ...companions]) await apply(cluster, object);
  await removeMade(cluster, spec.identity, unwanted);
  await applyRelease(cluster, spec.identity, record?.candidate ?? record?.serving ?? release);
  return handleOf(spec);
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
export async function applyRelease(
  cluster: Cluster,
  identity: WorkloadSpec['identity'],
  release: KeptRelease,
): Promise<void> {
  // An autoscaler that goes must not change the number any more, and one that comes finds the Deployment.
  if (!release.autoscaler) await applyAutoscaler(cluster, release);
  await applyDeployment(cluster, identity, release.deployment, boundsOf(release));
  if (release.autoscaler) await applyAutoscaler(cluster, release);
}

/**
 * Applies a Deployment unless a higher generation was taken over: what a suspended process still holds is compared with the version of the
 * object that was read after the record.
 */
export async function applyDeployment(
  cluster: Cluster,
  identity: WorkloadSpec['identity'],
  deployment: DeploymentObject,
  bounds: Bounds | null = null,
): Promise<FoundDeployment> {
  for (let at = 1; ; at++) {
    const { name, namespace } = deployment.metadata;
    let present = await find<FoundDeployment>(cluster, 'Deployment', namespace, name);
    requireNewest(await readRecord(cluster, identity), identity.generation);
    try {
      if (bounds)
        present = await handOverReplicas(
          cluster,
          deployment,
          present ??
            (await applyAt(cluster, { ...deployment, spec: { ...deployment.spec, replicas: bounds.min } }, null)),
          bounds,
        );
      return await applyAt(cluster, deployment, present);
    } catch (error) {
      if (!isConflict(error) || at === TRIES) throw error;
    }
  }
}

const applyAt = (
  cluster: Cluster,
  deployment: DeploymentObject,
  present: FoundDeployment | null,
): Promise<FoundDeployment> => {
  const version = present?.metadata.resourceVersion;
  const metadata = { ...deployment.metadata, ...(version === undefined ? {} : { resourceVersion: version }) };
  return apply<FoundDeployment>(cluster, { ...deployment, metadata });
};

/** Creates the namespace of an environment; one that is being deleted is waited for. */
export async function ensureNamespace(
  cluster: Cluster,
  spec: Pick<WorkloadSpec, 'identity'>,
  signal: AbortSignal,
): Promise<void> {
  const { [LABEL.service]: _service, ...labels } = identityLabels(spec.identity);
  const name = namespaceOf(spec.identity);
  for (const end = Date.now() + NAMESPACE_MS; ; await sleep(LOOK_MS, undefined, { signal })) {
    const present = await find(cluster, 'Namespace', undefined, name);
    if (present && present.metadata.labels?.[LABEL.installation] !== spec.identity.installation)
      throw new RuntimeError('refused', `The namespace ${name} is there and not ours: remove or rename it.`);
    if (present && !present.metadata.deletionTimestamp) return;
    if (!present) {
      await apply(cluster, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
      return;
    }
    if (Date.now() > end) throw new RuntimeError('failed', `The namespace ${name} is still being deleted.`);
  }
}

/** Removes the Deployment of a release that never served, with its autoscaler. */
export async function removeRollout(
  cluster: Cluster,
  identity: WorkloadSpec['identity'],
  hostname: string,
): Promise<void> {
  await removeAutoscalers(cluster, namespaceOf(identity), hostname);
  await remove(cluster, 'Deployment', namespaceOf(identity), hostname);
}

/** Returns the names of what a release may have made whose record does not tell. */
const madeBefore = (hostname: string): string[] =>
  ['Service', 'Ingress', 'NetworkPolicy', 'Secret'].map(
    (kind) => `${kind}/${hostname}${kind === 'Secret' ? '-registry' : ''}`,
  );

/** Removes objects of a service by the names in its record. */
export async function removeMade(cluster: Cluster, identity: WorkloadSpec['identity'], names: string[]): Promise<void> {
  const extensions = await extensionsOf(cluster);
  for (const whole of names) {
    const [kind, name] = whole.split('/') as [string, string];
    // An API that the cluster lost took its objects along.
    if (isThere(kind, extensions)) await remove(cluster, kind, namespaceOf(identity), name);
  }
}

/** Removes the variables of releases before that of the generation. Those of a later one may just have been made. */
export async function removeOldSecrets(
  cluster: Cluster,
  identity: WorkloadSpec['identity'],
  generation: number,
): Promise<void> {
  const secrets = await list(cluster, 'Secret', namespaceOf(identity), `${ofService(identity)},${LABEL.generation}`);
  for (const { metadata } of secrets)
    if (Number(metadata.labels?.[LABEL.generation]) < generation)
      await remove(cluster, 'Secret', namespaceOf(identity), metadata.name);
}
