import { setTimeout as sleep } from 'node:timers/promises';
import { RuntimeError, type Handle, type RuntimeContext, type WorkloadIdentity } from '#runtimes/runtime.ts';
import type { Cluster } from '../cluster.ts';
import { ANNOTATION, namespaceOf } from '../labels.ts';
import { changeRecord, readRecord, withChart, type ChartRecord } from '../record/index.ts';
import { countsOf, isSeen, listAllPods, listChartWorkloads, mergeInto, type ChartWorkload } from './workloads.ts';

const LOOK_MS = 500;
/** Milliseconds beyond their grace period in which pods must be gone. */
const GONE_MS = 60_000;
/** Label that no node has: a DaemonSet whose pods need it has none. */
const NOWHERE = 'quarterdeck.stopped';

type Stopped = ChartRecord['stopped'][number];

/** Ends all pods of a chart, remembers its sizes and keeps everything else (`Runtime.stop`). */
export async function stopChart(cluster: Cluster, identity: WorkloadIdentity, context: RuntimeContext): Promise<void> {
  const record = await readRecord(cluster, identity);
  if (!record?.chart) return;
  const workloads = await listChartWorkloads(cluster, identity, record.hostname);
  const running = workloads.flatMap((workload) => toStopped(workload));
  await changeRecord(cluster, identity, (present) => {
    // An attempt before may have stopped some of them.
    const known = present?.chart?.stopped ?? [];
    const fresh = running.filter((one) => !known.some((other) => other.kind === one.kind && other.name === one.name));
    const next = withChart(present, { stopped: [...known, ...fresh] }, true);
    return next && { ...next, generation: identity.generation };
  });
  for (const { kind, name } of running)
    await mergeInto(cluster, kind, namespaceOf(identity), name, sizeOf(kind, { isStopped: true, replicas: null }));
  await untilGone(cluster, identity, workloads, context);
}

/** Returns the size of a workload that a stop takes away; none for one that runs nothing. */
function toStopped({ kind, metadata: { name }, spec, status }: ChartWorkload): Stopped[] {
  switch (kind) {
    case 'Deployment':
    case 'StatefulSet':
      return spec.replicas === 0 ? [] : [{ kind, name, replicas: spec.replicas ?? 1 }];
    case 'Job':
      return spec.suspend === true || Number(status?.['active'] ?? 0) === 0 ? [] : [{ kind, name, replicas: null }];
    case 'CronJob':
      return spec.suspend === true ? [] : [{ kind, name, replicas: null }];
    default:
      return [{ kind, name, replicas: null }];
  }
}

function sizeOf(kind: string, { isStopped, replicas }: { isStopped: boolean; replicas: number | null }): object {
  switch (kind) {
    case 'Deployment':
    case 'StatefulSet':
      return { spec: { replicas: isStopped ? 0 : replicas } };
    case 'DaemonSet':
      return { spec: { template: { spec: { nodeSelector: { [NOWHERE]: isStopped ? 'true' : null } } } } };
    default:
      return { spec: { suspend: isStopped } };
  }
}

/** Gives the workloads of a chart the sizes back that a stop took away. */
export async function scaleBack(cluster: Cluster, identity: WorkloadIdentity, stopped: Stopped[]): Promise<void> {
  for (const { kind, name, replicas } of stopped)
    await mergeInto(cluster, kind, namespaceOf(identity), name, sizeOf(kind, { isStopped: false, replicas }));
}

async function untilGone(
  cluster: Cluster,
  identity: WorkloadIdentity,
  workloads: ChartWorkload[],
  { signal }: RuntimeContext,
): Promise<void> {
  let end: number | undefined;
  for (;;) {
    const pods = (await listAllPods(cluster, identity, workloads)).filter(({ status }) => status?.phase === 'Running');
    if (pods.length === 0) return;
    end ??=
      Date.now() +
      GONE_MS +
      Math.max(...pods.map(({ spec }) => Number(spec['terminationGracePeriodSeconds'] ?? 0))) * 1000;
    if (Date.now() > end)
      throw new RuntimeError(
        'failed',
        `The cluster does not end ${pods.map(({ metadata }) => metadata.name).join(', ')}.`,
      );
    await sleep(LOOK_MS, undefined, { signal });
  }
}

/** Replaces the pods of a chart, also after a stop (`Runtime.restart`); `followChart` waits for the new ones. */
export async function restartChart(cluster: Cluster, handle: Handle, asked: number): Promise<Handle> {
  const { identity } = handle;
  const record = await changeRecord(
    cluster,
    { ...identity, generation: asked },
    (present) => (present?.chart ? { ...present, generation: identity.generation } : null),
    { since: identity.generation },
  );
  if (!record?.chart?.isDeployed)
    throw new RuntimeError('failed', 'There is no release of the chart to restart: deploy the service.');
  await scaleBack(cluster, identity, record.chart.stopped);
  const metadata = { annotations: { [ANNOTATION.asked]: String(asked) } };
  for (const {
    kind,
    metadata: { name },
  } of await listChartWorkloads(cluster, identity, record.hostname))
    if (kind === 'Deployment' || kind === 'StatefulSet' || kind === 'DaemonSet')
      await mergeInto(cluster, kind, namespaceOf(identity), name, { spec: { template: { metadata } } });
  await changeRecord(cluster, identity, (present) => withChart(present, { stopped: [] }, false));
  return handle;
}

/** Waits until the pods of a chart are ready (`Runtime.progress`): after a deployment they are, after a restart not yet. */
export async function followChart(cluster: Cluster, { identity }: Handle, { signal }: RuntimeContext): Promise<void> {
  const record = await readRecord(cluster, identity);
  if (!record?.chart) throw new RuntimeError('failed', 'The record of the chart is gone: deploy the service again.');
  const { timeoutSeconds } = record.chart;
  for (const end = Date.now() + timeoutSeconds * 1000; ; await sleep(LOOK_MS, undefined, { signal })) {
    const workloads = await listChartWorkloads(cluster, identity, record.hostname);
    const late = workloads.filter((workload) => {
      const counts = countsOf(workload);
      return counts !== null && (!isSeen(workload) || counts.ready < counts.wanted);
    });
    if (late.length === 0) return;
    if (Date.now() > end)
      throw new RuntimeError(
        'not_ready',
        `${late.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join(', ')} of the chart did not get ready within ${timeoutSeconds} s (timeout_sec).`,
      );
  }
}
