import { attemptNumber, isReplaced } from '#runtimes/attempt.ts';
import {
  RuntimeError,
  cancelled,
  throwIfCancelled,
  type ChartSpec,
  type Handle,
  type RuntimeContext,
  type WorkloadIdentity,
} from '#runtimes/runtime.ts';
import { apply, find, list, pathOf, type Cluster } from '../cluster.ts';
import { alsoFailed, asRuntimeError } from '../errors.ts';
import type { ClusterObject } from '../kinds.ts';
import { namespaceOf } from '../labels.ts';
import { insist } from '../patience.ts';
import { environmentPolicy } from '../policies.ts';
import { changeRecord, recordName, withChart, type ServiceRecord } from '../record/index.ts';
import { isMarked } from '../record/marks.ts';
import { AlteredRecord } from '../record/seal.ts';
import { ensureNamespace } from '../submit.ts';
import { Border, type Hook } from './border.ts';
import { chartHandle } from './handle.ts';
import { failureOf } from './failure.ts';
import { runHelm } from './program.ts';
import { applyRoutes } from './routes.ts';
import { scaleBack, stopChart } from './stop.ts';
import { NOTHING_SEEN, watchRelease, type Watched } from './watch.ts';

/** Revisions that helm keeps; each has its manifest and values. */
const KEPT_REVISIONS = 5;
/** Seconds for helm besides those that it waits for objects. */
const MARGIN_SECONDS = 60;
/** Seconds to take a revision back that was cut off, without waiting for its pods. */
const RECOVER_SECONDS = 60;
/** Seconds to stop the release before again. */
const STOP_SECONDS = 90;
/** Hooks that the record names; the oldest are forgotten first. */
const MOST_HOOKS = 200;

/**
 * Applies a chart with helm, which waits until its objects are ready, and takes it back otherwise (`Runtime.submit`). A revision that an
 * earlier process left unfinished is taken back first.
 */
export async function submitChart(cluster: Cluster, spec: ChartSpec, context: RuntimeContext): Promise<Handle> {
  throwIfCancelled(context.signal);
  const namespace = await ensureNamespace(cluster, spec.identity, context.signal);
  await restrictPods(cluster, spec);
  const { identity } = spec;
  const record = await changeRecord(cluster, identity, (present) => takenOver(spec, present, attemptNumber(context)), {
    isMarked: isMarked(namespace, identity),
    replacesAltered: () =>
      context.log(`${new AlteredRecord(recordName(identity.serviceId)).message} This deployment writes it anew.`),
  });
  await apply(cluster, environmentPolicy(identity));
  const border = await Border.open(cluster, {
    identity,
    release: spec.hostname,
    allowClusterWide: spec.allowClusterWide,
    context,
  });
  try {
    await recover(cluster, border, spec, context);
    await scaleBack(cluster, identity, record?.chart?.stopped ?? []);
    await upgrade(cluster, border, spec, context);
  } catch (error) {
    if (record?.isStopped && !isReplaced(context)) await stopAgain(cluster, identity, context);
    throw error;
  } finally {
    await border.close();
    if (!isReplaced(context)) await noteHooks(cluster, identity, border.hooks);
  }
  await applyRoutes(cluster, spec, context);
  await changeRecord(cluster, identity, (present) => withChart(present, { isDeployed: true, stopped: [] }, false));
  return chartHandle(spec);
}

/** Ends the pods of the release before, which helm brought back although the chart had been stopped. A failure is told: the deployment failed already. */
async function stopAgain(cluster: Cluster, identity: WorkloadIdentity, context: RuntimeContext): Promise<void> {
  try {
    const signal = AbortSignal.timeout(STOP_SECONDS * 1000);
    await insist(STOP_SECONDS * 1000, () => stopChart(cluster, identity, { ...context, signal }));
    context.log('The release before is stopped, as it was before this deployment.');
  } catch (error) {
    context.log(
      `The release before was stopped and runs now: stop the service again. ${asRuntimeError(error).message}`,
    );
  }
}

const POD_SECURITY = 'pod-security.kubernetes.io/enforce';

const podSecurityOf = async (cluster: Cluster, identity: WorkloadIdentity): Promise<string | undefined> =>
  (await find(cluster, 'Namespace', undefined, namespaceOf(identity)))?.metadata.labels?.[POD_SECURITY];

/** Returns whether a chart of the environment could once have objects of the whole cluster. No pod can change where that stands. */
export const wasOpened = async (cluster: Cluster, identity: WorkloadIdentity): Promise<boolean> =>
  (await podSecurityOf(cluster, identity)) === 'privileged';

/**
 * Keeps pods of the environment from the machines that they run on (hostPath, privileged, hostNetwork), by the cluster's own admission. A
 * chart that may have objects of the whole cluster opens its environment.
 */
async function restrictPods(cluster: Cluster, { identity, allowClusterWide }: ChartSpec): Promise<void> {
  const name = namespaceOf(identity);
  const present = await podSecurityOf(cluster, identity);
  const wanted = allowClusterWide ? 'privileged' : 'baseline';
  if (present === wanted || present === 'privileged') return;
  const body = { metadata: { labels: { [POD_SECURITY]: wanted } } };
  await cluster.connection.call('PATCH', pathOf('Namespace', undefined, name), {
    body,
    type: 'application/merge-patch+json',
  });
}

function takenOver(spec: ChartSpec, present: ServiceRecord | null, attempt: number): ServiceRecord {
  const { generation } = spec.identity;
  const before = present?.chart;
  if (present?.generation === generation && (before?.attempt ?? 0) > attempt)
    throw new RuntimeError('superseded', 'A later attempt goes on with this deployment.');
  const { displayName, hostname, timeoutSeconds } = spec;
  return {
    generation,
    hostname,
    serving: null,
    candidate: null,
    isStopped: present?.isStopped ?? false,
    chart: {
      attempt,
      displayName,
      timeoutSeconds,
      isDeployed: before?.isDeployed ?? false,
      stopped: before?.stopped ?? [],
      hooks: before?.hooks ?? [],
    },
  };
}

async function noteHooks(cluster: Cluster, identity: WorkloadIdentity, made: Hook[]): Promise<void> {
  if (made.length === 0) return;
  await changeRecord(cluster, identity, (present) => {
    const known = present?.chart?.hooks ?? [];
    const fresh = made.filter((one) => !known.some((other) => isSame(one, other)));
    return withChart(present, { hooks: [...known, ...fresh].slice(-MOST_HOOKS) });
  });
}

const isSame = (one: Hook, other: Hook): boolean => one.collection === other.collection && one.name === other.name;

/** Returns the arguments of the upgrade; values come behind them. */
export function upgradeArguments(spec: ChartSpec): string[] {
  return [
    'upgrade',
    spec.hostname,
    spec.chart,
    '--install',
    '--atomic',
    '--wait',
    // Without any value helm would go on with those of the release before.
    '--reset-values',
    '--namespace',
    namespaceOf(spec.identity),
    '--timeout',
    `${Math.max(1, spec.timeoutSeconds)}s`,
    '--history-max',
    String(KEPT_REVISIONS),
    ...spec.arguments,
  ];
}

async function upgrade(cluster: Cluster, border: Border, spec: ChartSpec, context: RuntimeContext): Promise<void> {
  const { signal, log } = context;
  log(`Applying the chart ${spec.title} with helm.`);
  const watching = new AbortController();
  const watched: Watched = { ...NOTHING_SEEN };
  const watch = watchRelease(cluster, { border, spec, watched, log, signal: watching.signal });
  try {
    const { exitCode, stderr } = await runHelm(cluster.helm, upgradeArguments(spec), {
      border,
      namespace: namespaceOf(spec.identity),
      values: spec.values,
      folder: spec.folder,
      signal,
      // The release before has as long to get ready again.
      timeoutSeconds: 2 * spec.timeoutSeconds + MARGIN_SECONDS,
      onLine: (line, stream) => tellLine(line, stream, log),
    }).finally(async () => {
      watching.abort();
      await watch;
    });
    if (exitCode !== 0) throw failureOf(spec, stderr, { watched, refusals: border.refusals });
  } catch (error) {
    if (isReplaced(context)) throw cancelled(error);
    if (signal.aborted) throw await recoverFor(cancelled(signal.reason), cluster, border, spec, context);
    throw error;
  }
}

/** Takes the revision of a cancelled deployment back. Returns the failure, with that of the recovery behind it where that fails, too. */
async function recoverFor(
  failure: RuntimeError,
  cluster: Cluster,
  border: Border,
  spec: ChartSpec,
  context: RuntimeContext,
): Promise<RuntimeError> {
  try {
    await recover(cluster, border, spec, { ...context, signal: AbortSignal.timeout(RECOVER_SECONDS * 1000) });
    return failure;
  } catch (error) {
    return alsoFailed(failure, `The revision before could not be brought back: ${asRuntimeError(error).message}`);
  }
}

/** Tells what helm says on its way: its notes for people, and warnings, not each object. */
function tellLine(line: string, stream: 'stdout' | 'stderr', log: (line: string) => void): void {
  const isNoise = stream === 'stderr' && /^(?:WARNING: Kubernetes configuration file|Error: )/.test(line);
  if (!isNoise && line.trim() !== '') log(`helm: ${line}`);
}

/** Secret of a revision, with labels that helm finds it by. */
interface Revision {
  number: number;
  status: string;
}

/** Returns the revisions that helm keeps of a release, the oldest first. */
export async function listRevisions(cluster: Cluster, identity: WorkloadIdentity, name: string): Promise<Revision[]> {
  const found = await list<ClusterObject>(cluster, 'Secret', namespaceOf(identity), `owner=helm,name=${name}`);
  return found
    .map(({ metadata: { labels = {} } }) => ({ number: Number(labels['version']), status: labels['status'] ?? '' }))
    .toSorted((one, other) => one.number - other.number);
}

/** Takes a revision back that a process left unfinished: helm refuses every other one until then. */
async function recover(cluster: Cluster, border: Border, spec: ChartSpec, context: RuntimeContext): Promise<void> {
  const revisions = await listRevisions(cluster, spec.identity, spec.hostname);
  const last = revisions.at(-1);
  if (!last || !(last.status.startsWith('pending') || last.status === 'uninstalling')) return;
  const good = revisions.findLast(({ status }) => status === 'deployed' || status === 'superseded');
  context.log(`Revision ${last.number} of the chart was cut off (${last.status}): it is taken back.`);
  const args = good
    ? ['rollback', spec.hostname, String(good.number), '--no-hooks', '--cleanup-on-fail']
    : ['uninstall', spec.hostname, '--no-hooks', '--wait', '--timeout', `${RECOVER_SECONDS}s`];
  const { exitCode, stderr } = await runHelm(cluster.helm, [...args, '--namespace', namespaceOf(spec.identity)], {
    border,
    namespace: namespaceOf(spec.identity),
    folder: spec.folder,
    signal: context.signal,
    timeoutSeconds: RECOVER_SECONDS + MARGIN_SECONDS,
  });
  if (exitCode !== 0) throw failureOf(spec, stderr, { watched: NOTHING_SEEN, refusals: border.refusals });
}
