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
import { apisOf, isThere } from './extensions.ts';
import { LABEL, namespaceOf, ofService } from './labels.ts';
import { applyRelease, removeRollout, stopped, withRestart } from './submit.ts';
import { recordAnew } from './helm/anew.ts';
import { isChart } from './helm/handle.ts';
import { uninstallChart } from './helm/remove.ts';
import { stopChart } from './helm/stop.ts';
import { KINDS, findMade, listMade } from './made.ts';
import { changeRecord, readRecord, recordName, type ServiceRecord } from './record/index.ts';
import { forgetSealed } from './record/marks.ts';
import { AlteredRecord } from './record/seal.ts';
import { untilLetGo } from './scaling.ts';

const LOOK_MS = 250;
/** Milliseconds beyond their grace period in which pods and volumes must be gone. */
const GONE_MS = 60_000;

/** Ends all pods of a service and keeps everything else (`Runtime.stop`). */
export async function stopService(
  cluster: Cluster,
  identity: WorkloadIdentity,
  handle: Handle | null,
  context: RuntimeContext,
): Promise<void> {
  const found = await unlessAltered(readRecord(cluster, identity, handle?.identity.generation));
  if (found === 'altered') return stopAltered(cluster, identity, handle, context);
  if (found?.chart) return stopChart(cluster, identity, context);
  let before: ServiceRecord | null = null;
  await changeRecord(cluster, identity, (present) => {
    before = present;
    return present && { ...present, generation: identity.generation, candidate: null, isStopped: true };
  });
  if (!before) return;
  const { serving, hostname } = before as ServiceRecord;
  if (serving) await applyRelease(cluster, { identity }, stopped(serving));
  else await removeRollout(cluster, { identity }, hostname);
  await untilGone(cluster, identity, ['Pod'], context.signal);
}

async function unlessAltered<T>(reading: Promise<T>): Promise<T | 'altered'> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof AlteredRecord) return 'altered';
    throw error;
  }
}

/** Stops a service whose record was altered: nothing of that is used, so that its Deployment is made anew by the next deployment. */
async function stopAltered(
  cluster: Cluster,
  identity: WorkloadIdentity,
  handle: Handle | null,
  context: RuntimeContext,
): Promise<void> {
  context.log(new AlteredRecord(recordName(identity.serviceId)).message);
  const namespace = namespaceOf(identity);
  const deployments = await list(cluster, 'Deployment', namespace, ofService(identity));
  const made = await findMade(cluster, identity);
  const hostname = String(handle?.data['hostname'] ?? deployments[0]?.metadata.name ?? '');
  const isOfChart = handle !== null && isChart(handle);
  if (hostname !== '')
    await changeRecord(
      cluster,
      identity,
      () =>
        isOfChart
          ? recordAnew(identity, hostname, true)
          : { generation: identity.generation, hostname, serving: null, candidate: null, isStopped: true, made },
      { replacesAltered: () => undefined },
    );
  if (isOfChart) return stopChart(cluster, identity, context);
  for (const { metadata } of deployments) await removeRollout(cluster, { identity }, metadata.name);
  await untilGone(cluster, identity, ['Pod'], context.signal);
}

/** Replaces the pods of the present release (`Runtime.restart`); the rollout is followed like that of a release. */
export async function restartService(cluster: Cluster, handle: Handle, asked: number): Promise<Handle> {
  const { identity } = handle;
  // A stop may have raised the generation above that of the release: the restart is as new as the deployment that asks for it.
  const restarted = (present: ServiceRecord | null): ServiceRecord | null => {
    if (!present?.serving) return null;
    const { generation, deployment } = present.serving;
    return { ...present, generation, candidate: { ...present.serving, deployment: withRestart(deployment, asked) } };
  };
  const since = identity.generation;
  const record = await changeRecord(cluster, { ...identity, generation: asked }, restarted, { since });
  if (!record?.candidate) throw new RuntimeError('failed', 'There is no release to restart: deploy the service.');
  await applyRelease(cluster, { identity }, record.candidate);
  return handle;
}

/** Removes everything of a service (`Runtime.remove`). */
export async function removeService(
  cluster: Cluster,
  identity: WorkloadIdentity,
  handle: Handle | null,
  context: RuntimeContext,
): Promise<void> {
  const found = await unlessAltered(readRecord(cluster, identity));
  const record = found === 'altered' ? null : found;
  if (found === 'altered') context.log(new AlteredRecord(recordName(identity.serviceId)).message);
  const chart = record?.chart ? record : found === 'altered' && handle && isChart(handle) ? handle.data : null;
  if (chart)
    await uninstallChart(cluster, identity, { hostname: String(chart['hostname']), hooks: record?.chart?.hooks ?? [] }, context); // prettier-ignore
  const apis = await apisOf(cluster);
  for (const kind of KINDS.filter((one) => isThere(one, apis))) {
    if (kind === 'ConfigMap')
      await untilGone(cluster, identity, ['Job', 'Pod', 'PersistentVolumeClaim'], context.signal);
    for (const { metadata } of await listMade(cluster, kind, identity, record)) {
      await remove(cluster, kind, namespaceOf(identity), metadata.name);
      if (kind === 'ScaledObject') await untilLetGo(cluster, namespaceOf(identity), metadata.name);
    }
  }
  await forgetSealed(cluster, identity);
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
  const found = await listMade<Pod>(cluster, kind, identity);
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
  for (const kind of ['ConfigMap', 'Job'])
    if ((await unlessForbidden(kind, list(cluster, kind, name, mine))).length > 0) return;
  await remove(cluster, 'Namespace', undefined, name);
}

/** Returns the Jobs of a namespace; none where the account may not list them, as it made none. */
async function unlessForbidden(kind: Kind, listing: Promise<ClusterObject[]>): Promise<ClusterObject[]> {
  try {
    return await listing;
  } catch (error) {
    if (kind === 'Job' && error instanceof ApiError && error.status === 403) return [];
    throw error;
  }
}
