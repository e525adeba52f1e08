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
import { companionsOf, deploymentOf } from './objects.ts';
import { environmentPolicy } from './policies.ts';
import { changeRecord, readRecord, requireNewest, type KeptRelease } from './record.ts';

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
  await ensureNamespace(cluster, spec, context.signal);
  const release: KeptRelease = { generation: spec.identity.generation, deployment: deploymentOf(spec) };
  const record = await changeRecord(cluster, spec.identity, (present) => {
    const serving = present?.serving ?? null;
    const isStopped = present?.isStopped ?? false;
    const isServing = serving !== null && !isStopped && isSame(serving, release);
    return {
      generation: spec.identity.generation,
      hostname: spec.hostname,
      serving,
      candidate: isServing ? null : release,
      isStopped,
    };
  });
  throwIfCancelled(context.signal);
  for (const object of [environmentPolicy(spec.identity), ...companionsOf(spec)]) await apply(cluster, object);
  await removeOthers(cluster, spec);
  const kept = record?.candidate ?? record?.serving ?? release;
  await applyDeployment(cluster, spec.identity, kept.deployment);
  return handleOf(spec);
}

/** Compares releases but for a restart, which a repeated submission must not undo. */
function isSame(serving: KeptRelease, release: KeptRelease): boolean {
  const asked = serving.deployment.spec.template.metadata.annotations[ANNOTATION.asked];
  const deployment = asked === undefined ? release.deployment : withRestart(release.deployment, Number(asked));
  return serving.generation === release.generation && JSON.stringify(serving.deployment) === JSON.stringify(deployment);
}

/** Returns the Deployment with new processes for a deployment that asks for a restart. */
export function withRestart(deployment: DeploymentObject, asked: number): DeploymentObject {
  const copy = structuredClone(deployment);
  copy.spec.template.metadata.annotations[ANNOTATION.asked] = String(asked);
  return copy;
}

/** Returns the Deployment without pods. */
export const stopped = (deployment: DeploymentObject): DeploymentObject => ({
  ...deployment,
  spec: { ...deployment.spec, replicas: 0 },
});

/**
 * Applies a Deployment unless a higher generation was taken over: what a suspended process still holds is compared with the version of the
 * object that was read after the record.
 */
export async function applyDeployment(
  cluster: Cluster,
  identity: WorkloadSpec['identity'],
  deployment: DeploymentObject,
): Promise<FoundDeployment> {
  for (let at = 1; ; at++) {
    const { name, namespace } = deployment.metadata;
    const present = await find<FoundDeployment>(cluster, 'Deployment', namespace, name);
    requireNewest(await readRecord(cluster, identity), identity.generation);
    const version = present?.metadata.resourceVersion;
    const metadata = { ...deployment.metadata, ...(version === undefined ? {} : { resourceVersion: version }) };
    try {
      return await apply<FoundDeployment>(cluster, { ...deployment, metadata });
    } catch (error) {
      if (!isConflict(error) || at === TRIES) throw error;
    }
  }
}

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

/** Removes the Service, the way from outside and the access to a registry that the release has no longer. */
async function removeOthers(cluster: Cluster, spec: WorkloadSpec): Promise<void> {
  const namespace = namespaceOf(spec.identity);
  if (spec.ports.length === 0) await remove(cluster, 'Service', namespace, spec.hostname);
  if (spec.routes.length === 0) {
    await remove(cluster, 'Ingress', namespace, spec.hostname);
    await remove(cluster, 'NetworkPolicy', namespace, spec.hostname);
  }
  if (!spec.registry) await remove(cluster, 'Secret', namespace, `${spec.hostname}-registry`);
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
