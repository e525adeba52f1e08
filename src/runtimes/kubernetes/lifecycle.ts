import { setTimeout as sleep } from 'node:timers/promises';
import {
  RuntimeError,
  type EnvironmentIdentity,
  type Handle,
  type RuntimeContext,
  type WorkloadIdentity,
} from '#runtimes/runtime.ts';
import { find, list, remove, type Cluster, type Kind } from './cluster.ts';
import { ApiError } from './errors.ts';
import type { ClusterObject, Pod } from './kinds.ts';
import { extensionsOf, isThere } from './extensions.ts';
import { LABEL, namespaceOf, ofService } from './labels.ts';
import { applyRelease, removeRollout, stopped, withRestart } from './submit.ts';
import { uninstallChart } from './helm/remove.ts';
import { stopChart } from './helm/stop.ts';
import { changeRecord, readRecord, type ServiceRecord } from './record.ts';

const LOOK_MS = 250;
/** Milliseconds beyond their grace period in which pods and volumes must be gone. */
const GONE_MS = 60_000;

/** Ends all pods of a service and keeps everything else (`Runtime.stop`). */
export async function stopService(
  cluster: Cluster,
  identity: WorkloadIdentity,
  context: RuntimeContext,
): Promise<void> {
  if ((await readRecord(cluster, identity))?.chart) return stopChart(cluster, identity, context);
  let before: ServiceRecord | null = null;
  await changeRecord(cluster, identity, (present) => {
    before = present;
    return present && { ...present, generation: identity.generation, candidate: null, isStopped: true };
  });
  if (!before) return;
  const { serving, hostname } = before as ServiceRecord;
  if (serving) await applyRelease(cluster, identity, stopped(serving));
  else await removeRollout(cluster, identity, hostname);
  await untilGone(cluster, identity, ['Pod'], context.signal);
}

/** Replaces the pods of the present release (`Runtime.restart`); the rollout is followed like that of a release. */
export async function restartService(cluster: Cluster, handle: Handle, asked: number): Promise<Handle> {
  const { identity } = handle;
  // A stop may have raised the generation above that of the release: the restart is as new as the deployment that asks for it.
  const record = await changeRecord(cluster, { ...identity, generation: asked }, (present) => {
    if (!present?.serving) return null;
    const { generation, deployment } = present.serving;
    return { ...present, generation, candidate: { ...present.serving, deployment: withRestart(deployment, asked) } };
  });
  if (!record?.candidate) throw new RuntimeError('failed', 'There is no release to restart: deploy the service.');
  await applyRelease(cluster, identity, record.candidate);
  return handle;
}

/** Kinds of what a service has in its namespace; the record goes last, because it tells of the rest. */
const KINDS: Kind[] = [
  'Job',
  'ScaledObject',
  'HorizontalPodAutoscaler',
  'PodDisruptionBudget',
  'Deployment',
  'TriggerAuthentication',
  'HTTPRoute',
  'ListenerSet',
  'GRPCRoute',
  'Ingress',
  'Certificate',
  'NetworkPolicy',
  'Service',
  'Secret',
  'PersistentVolumeClaim',
  'ConfigMap',
];

/** Removes everything of a service (`Runtime.remove`). */
export async function removeService(
  cluster: Cluster,
  identity: WorkloadIdentity,
  context: RuntimeContext,
): Promise<void> {
  const record = await readRecord(cluster, identity);
  if (record?.chart) await uninstallChart(cluster, identity, record, context);
  const extensions = await extensionsOf(cluster);
  for (const kind of KINDS.filter((one) => isThere(one, extensions))) {
    if (kind === 'ConfigMap')
      await untilGone(cluster, identity, ['Job', 'Pod', 'PersistentVolumeClaim'], context.signal);
    for (const { metadata } of await listMade(cluster, kind, namespaceOf(identity), ofService(identity)))
      await remove(cluster, kind, namespaceOf(identity), metadata.name);
  }
}

/** Returns objects of a selector; none of a kind that the account may not list, as it made none: rights to Jobs are those to one feature. */
async function listMade<T extends ClusterObject>(
  cluster: Cluster,
  kind: Kind,
  namespace: string,
  selector: string,
): Promise<T[]> {
  try {
    return await list<T>(cluster, kind, namespace, selector);
  } catch (error) {
    if (kind === 'Job' && error instanceof ApiError && error.status === 403) return [];
    throw error;
  }
}

/** Waits until nothing of some kinds is left of a service; pods may take their grace period. */
async function untilGone(
  cluster: Cluster,
  identity: WorkloadIdentity,
  kinds: Kind[],
  signal: AbortSignal,
): Promise<void> {
  let end: number | undefined;
  for (;;) {
    const left = (await Promise.all(kinds.map((kind) => listOf(cluster, kind, identity)))).flat();
    if (left.length === 0) return;
    end ??= Date.now() + GONE_MS + Math.max(...left.map(({ graceSeconds }) => graceSeconds)) * 1000;
    if (Date.now() > end)
      throw new RuntimeError('failed', `The cluster does not end ${left.map(({ name }) => name).join(', ')}.`);
    await sleep(LOOK_MS, undefined, { signal });
  }
}

async function listOf(cluster: Cluster, kind: Kind, identity: WorkloadIdentity) {
  const found = await listMade<Pod>(cluster, kind, namespaceOf(identity), ofService(identity));
  return found.map(({ metadata, spec }) => ({
    name: `${kind} ${metadata.name}`,
    // Of an object that is too large only the metadata is known.
    graceSeconds: Number(spec?.['terminationGracePeriodSeconds'] ?? 0),
  }));
}

/** Removes the namespace of an environment that has nothing any more (`Runtime.removeEnvironment`). */
export async function removeEnvironment(cluster: Cluster, identity: EnvironmentIdentity): Promise<void> {
  const name = namespaceOf(identity);
  const namespace = await find(cluster, 'Namespace', undefined, name);
  if (namespace?.metadata.labels?.[LABEL.installation] !== cluster.installation) return;
  const mine = `${LABEL.installation}=${cluster.installation}`;
  for (const kind of ['ConfigMap', 'Job']) if ((await listMade(cluster, kind, name, mine)).length > 0) return;
  await remove(cluster, 'Namespace', undefined, name);
}
