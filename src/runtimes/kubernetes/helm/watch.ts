import { setTimeout as sleep } from 'node:timers/promises';
import { LAST_LINES, type ChartSpec, type LogLine } from '#runtimes/runtime.ts';
import { list, type Cluster } from '../cluster.ts';
import type { Pod } from '../kinds.ts';
import { LABEL, namespaceOf } from '../labels.ts';
import { lastLinesOf } from '../logs.ts';
import { instanceOf, isReady, troubleOf } from '../pods.ts';
import type { Border } from './border.ts';
import { listChartPods, listChartWorkloads } from './workloads.ts';

/** Milliseconds between two looks at the pods of a chart. */
const LOOK_MS = 1_000;
/** Lines of all hooks together that the deployment's log gets. */
const MOST_HOOK_LINES = 2_000;

/** Last trouble that was seen: helm takes the pods away before it ends. */
export interface Watched {
  /** Pod that did not get ready. */
  failed: FailedPod | null;
  failedHook: FailedPod | null;
}

export const NOTHING_SEEN: Watched = { failed: null, failedHook: null };

export interface FailedPod {
  pod: string;
  why: string;
  lines: LogLine[];
}

export interface Watching {
  border: Pick<Border, 'hooks' | 'beforeHookGoes'>;
  spec: ChartSpec;
  watched: Watched;
  log(line: string): void;
  signal: AbortSignal;
}

/**
 * Tells why pods do not get ready and what hooks write, until the signal is aborted. Helm says neither. Hooks are read once more when
 * helm removes them, and when it has ended. Never throws.
 */
export async function watchRelease(cluster: Cluster, watching: Watching): Promise<void> {
  const told = new Set<string>();
  const tellOnce = (line: string) => {
    if (told.has(line)) return;
    told.add(line);
    watching.log(line);
  };
  // Helm goes on, and tells by itself whether the cluster is away.
  const tellFailure = (error: unknown) =>
    tellOnce(`The pods of the chart cannot be looked at: ${(error as Error).message}`);
  const hookLines = new Map<string, number>();
  let reading = Promise.resolve();
  const readHooks = () => (reading = reading.then(() => tellHooks(cluster, watching, hookLines)).catch(tellFailure));
  watching.border.beforeHookGoes = readHooks;
  while (!watching.signal.aborted) {
    await look(cluster, watching, tellOnce).catch(tellFailure);
    await readHooks();
    await sleep(LOOK_MS, undefined, { signal: watching.signal }).catch(() => undefined);
  }
  await readHooks();
}

async function look(cluster: Cluster, { spec, watched }: Watching, tell: (line: string) => void): Promise<void> {
  const workloads = await listChartWorkloads(cluster, spec.identity, spec.hostname);
  for (const { kind, metadata, status } of workloads) {
    const conditions = (status?.['conditions'] ?? []) as { type: string; status: string; message?: string }[];
    const refused = conditions.find(({ type, status: is }) => type === 'ReplicaFailure' && is === 'True');
    if (!refused) continue;
    const [pod, why] = [`${kind} ${metadata.name}`, `the cluster makes no pods: ${refused.message ?? ''}`];
    tell(`${pod}: ${why}`);
    watched.failed = { pod, why, lines: [] };
  }
  const pods = await listChartPods(cluster, spec.identity, workloads);
  for (const pod of pods) {
    const { name } = pod.metadata;
    if (isReady(pod) || pod.status?.phase === 'Succeeded') continue;
    const trouble = troubleOf(pod);
    if (trouble !== null) tell(`${name}: ${trouble}.`);
    const why = trouble ?? (instanceOf(pod).state === 'running' ? 'its checks do not pass' : null);
    if (why !== null) watched.failed = { pod: name, why, lines: await lastLinesOf(cluster, pod, LAST_LINES) };
  }
}

/** Tells the lines that the pods of hooks have written since the last look. */
async function tellHooks(
  cluster: Cluster,
  { border, spec, watched, log }: Watching,
  told: Map<string, number>,
): Promise<void> {
  const jobs = new Set(border.hooks.map(({ name }) => name));
  if (jobs.size === 0) return;
  const pods = await list<Pod>(cluster, 'Pod', namespaceOf(spec.identity), `!${LABEL.service}`);
  for (const pod of pods) {
    const { name, labels = {} } = pod.metadata;
    if (!jobs.has(labels['batch.kubernetes.io/job-name'] ?? '') && !jobs.has(name)) continue;
    const lines = await lastLinesOf(cluster, pod, MOST_HOOK_LINES);
    for (const { text } of lines.slice(told.get(name) ?? 0)) log(`hook ${name}: ${text}`);
    told.set(name, lines.length);
    if (pod.status?.phase !== 'Failed') continue;
    watched.failedHook = { pod: name, why: troubleOf(pod) ?? 'it failed', lines };
  }
}
