import {
  RuntimeError,
  type ChartSpec,
  type ClusterAccess,
  type Deployable,
  type Handle,
  type Runtime,
  type RuntimeContext,
  type RuntimeReport,
  type TaskSpec,
  type WorkloadSpec,
} from '#runtimes/runtime.ts';
import type { FormerLogStore } from '#runtimes/former-log-store.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { newestLines } from '#runtimes/tools/packed-log.ts';
import { KeyedLock } from '#kernel/keyed-lock.ts';
import type { Cluster } from './cluster.ts';
import { Connection, type ConnectionOptions } from './connection.ts';
import { asRuntimeError } from './errors.ts';
import { execInService } from './exec.ts';
import { endpointsOfService, openPort } from './forward.ts';
import { FormerPods } from './former-logs.ts';
import { diffChart } from './helm/diff.ts';
import { isChart } from './helm/handle.ts';
import { observeChart } from './helm/observe.ts';
import { submitChart } from './helm/release.ts';
import { chartServices } from './helm/routes.ts';
import { followChart, restartChart } from './helm/stop.ts';
import { buildingOf, withBuilds, type ClusterImages } from './images.ts';
import { removeEnvironment, removeService, restartService, stopService } from './lifecycle.ts';
import { readLogs } from './logs.ts';
import { measureService } from './metrics.ts';
import { listNodes } from './nodes.ts';
import { MOST_SECRET_BYTES } from './objects.ts';
import { listWorkloads, observeService } from './observe.ts';
import { readCertificates } from './outside.ts';
import { previewRelease } from './preview.ts';
import { Reporter } from './report.ts';
import { RequestCounter } from './requests/counter.ts';
import { followRollout } from './rollout.ts';
import { submitRelease } from './submit.ts';
import { removeTasks, runTask, taskRefusals } from './tasks.ts';
import { ClusterCache } from './watch/cache.ts';

export interface KubernetesRuntimeOptions extends ConnectionOptions {
  installation: string;
  /** Key of 32 bytes that seals the records of services in this cluster, and those of no other. */
  recordKey: Buffer;
  /** Absolute path of the program helm; empty for the one of the usual PATH. */
  helm?: string;
  /** Reason why pods do not reach this installation, with the remedy; null if they do, by a URL that the runtime need not know. */
  unreachedBy?: string | null;
  /** Builder and registries for images that are built for the cluster; without them nothing is built. */
  images?: ClusterImages;
  /** Keeps the logs of pods that have ended, while the cluster is followed; without it they end with their pods. */
  formerLogs?: FormerLogStore;
  /** Receives lines for the operator. */
  log?(line: string): void;
}

/** Runtime of one cluster. */
export interface KubernetesRuntime extends Runtime {
  /** Uses another address or other credentials from the next call on. */
  use(access: ClusterAccess): void;
}

/** Creates the runtime of one Kubernetes cluster. It connects with its first call. */
export function createKubernetesRuntime({
  installation,
  recordKey,
  helm,
  unreachedBy = null,
  images,
  formerLogs,
  log = () => undefined,
  ...options
}: KubernetesRuntimeOptions): KubernetesRuntime {
  const connection = new Connection(options);
  const services = new KeyedLock();
  const alone = <T>({ serviceId }: { serviceId: string }, work: () => Promise<T>) => services.run(serviceId, work);
  const plain: Cluster = { connection, installation, recordKey, helm: helm || findProgram('helm') };
  const formerPods = formerLogs && new FormerPods(plain, formerLogs, log);
  const cache = new ClusterCache(plain, {}, formerPods);
  const cluster: Cluster = { ...plain, cache };
  const reporter = new Reporter(cluster);
  const counter = new RequestCounter(cluster);
  return {
    name: 'kubernetes',
    check: async ({ isQuick = false } = {}) => {
      const report = await reporter.check(isQuick);
      if (!report.ok) cache.doubt();
      return withBuilds(cluster, images, withAddress(report, unreachedBy));
    },
    ...(unreachedBy === null ? {} : { hostAddress: () => Promise.reject(new RuntimeError('refused', unreachedBy)) }),
    ...(images ? buildingOf(images) : {}),
    refusals,
    use: (access) => {
      reporter.forget();
      connection.use(access);
      cache.restart();
    },
    submit: (spec, context) =>
      told(
        alone(spec.identity, () => submit(cluster, spec, context)),
        context.signal,
      ),
    preview: (spec, signal) => told(previewRelease(cluster, spec, signal), signal),
    progress: (handle, context) =>
      told((isChart(handle) ? followChart : followRollout)(cluster, handle, context), context.signal),
    watch: (listener) => cache.use(listener),
    observe: (handle) => told((isChart(handle) ? observeChart : observeService)(cluster, handle)),
    stop: (identity, handle, context) =>
      told(
        alone(identity, () => stopService(cluster, identity, handle, context)),
        context.signal,
      ),
    restart: (handle, asked) =>
      told(alone(handle.identity, () => (isChart(handle) ? restartChart : restartService)(cluster, handle, asked))),
    remove: (identity, handle, context) =>
      told(
        alone(identity, () => removeService(cluster, identity, handle, context)),
        context.signal,
      ),
    logs: (handle, options) => readLogs(cluster, handle, options),
    ...(formerLogs
      ? { formerLogs: async ({ serviceId }, options) => newestLines(await formerLogs.list(serviceId), options) }
      : {}),
    run: (spec, context) => told(runTask(cluster, spec, context), context.signal),
    removeTasks: (identity, names) => told(removeTasks(cluster, identity, names)),
    endpoints: (handle) => told(endpointsOfService(cluster, handle)),
    openPort: (handle, port, signal) => told(openPort(cluster, handle, port, signal), signal),
    exec: (handle, request, signal) => told(execInService(cluster, handle, request, signal), signal),
    diff: (chart, context) => told(diffChart(cluster, chart, context), context.signal),
    chartServices: ({ identity, data }) => told(chartServices(cluster, identity, String(data['hostname']))),
    certificates: (hosts) => told(readCertificates(cluster, hosts)),
    nodes: () => told(listNodes(cluster)),
    requests: (handles, since, signal) => told(counter.count(handles, since, signal), signal),
    metrics: (handle) => told(measureService(cluster, handle)),
    removeEnvironment: (identity) => told(removeEnvironment(cluster, identity)),
    list: () => told(listWorkloads(cluster)),
    close: async () => {
      await cache.close();
      await formerPods?.close();
      await connection.close();
    },
  };
}

/** Adds to a report what commands lack that reach this installation. */
const withAddress = (report: RuntimeReport, unreachedBy: string | null): RuntimeReport =>
  report.ok && unreachedBy !== null
    ? { ...report, missing: { ...report.missing, 'host-address': unreachedBy } }
    : report;

function submit(cluster: Cluster, deployable: Deployable, context: RuntimeContext): Promise<Handle> {
  switch (deployable.type) {
    case 'workload':
      return submitRelease(cluster, deployable, context);
    case 'helm':
      return submitChart(cluster, deployable, context);
  }
}

/** Converts the errors of calls to the API server. */
async function told<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof RuntimeError ? error : asRuntimeError(error, signal);
  }
}

function refusals(spec: Deployable | TaskSpec): string[] {
  switch (spec.type) {
    case undefined:
      return [...taskRefusals(spec), ...secretRefusals(spec)];
    case 'workload':
      return secretRefusals(spec);
    case 'helm':
      return chartRefusals(spec);
  }
}

function chartRefusals({ values }: ChartSpec): string[] {
  const bytes = values.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0);
  if (bytes <= MOST_SECRET_BYTES) return [];
  return [
    `The values have ${bytes} bytes together, and helm keeps ${MOST_SECRET_BYTES} in the cluster: leave some out.`,
  ];
}

function secretRefusals(spec: WorkloadSpec | TaskSpec): string[] {
  const texts = [...Object.values(spec.environment), ...spec.files.map(({ content }) => content)];
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes <= MOST_SECRET_BYTES) return [];
  return [`Variables and files have ${bytes} bytes together, and Kubernetes takes ${MOST_SECRET_BYTES}.`];
}
