import { RuntimeError, type ClusterAccess, type Runtime, type TaskSpec, type WorkloadSpec } from '#runtimes/runtime.ts';
import { KeyedLock } from '#kernel/keyed-lock.ts';
import type { Cluster } from './cluster.ts';
import { Connection, type ConnectionOptions } from './connection.ts';
import { asRuntimeError } from './errors.ts';
import { execInService } from './exec.ts';
import { buildingOf, withBuilds, type ClusterImages } from './images.ts';
import { removeEnvironment, removeService, restartService, stopService } from './lifecycle.ts';
import { readLogs } from './logs.ts';
import { measureService } from './metrics.ts';
import { MOST_SECRET_BYTES } from './objects.ts';
import { listWorkloads, observeService } from './observe.ts';
import { readCertificates } from './outside.ts';
import { reportOf } from './report.ts';
import { followRollout } from './rollout.ts';
import { submitRelease } from './submit.ts';

export interface KubernetesRuntimeOptions extends ConnectionOptions {
  installation: string;
  /** Builder and registries for images that are built for the cluster; without them nothing is built. */
  images?: ClusterImages;
}

/** Runtime of one cluster. */
export interface KubernetesRuntime extends Runtime {
  /** Uses another address or other credentials from the next call on. */
  use(access: ClusterAccess): void;
}

/** Creates the runtime of one Kubernetes cluster. It connects with its first call. */
export function createKubernetesRuntime({
  installation,
  images,
  ...options
}: KubernetesRuntimeOptions): KubernetesRuntime {
  const connection = new Connection(options);
  const services = new KeyedLock();
  const alone = <T>({ serviceId }: { serviceId: string }, work: () => Promise<T>) => services.run(serviceId, work);
  const cluster: Cluster = { connection, installation };
  return {
    name: 'kubernetes',
    check: async () => withBuilds(cluster, images, await reportOf(cluster)),
    ...(images ? buildingOf(images) : {}),
    refusals,
    use: (access) => connection.use(access),
    submit: (spec, context) =>
      told(
        alone(spec.identity, () => submitRelease(cluster, spec, context)),
        context.signal,
      ),
    progress: (handle, context) => told(followRollout(cluster, handle, context), context.signal),
    observe: (handle) => told(observeService(cluster, handle)),
    stop: (identity, _handle, context) =>
      told(
        alone(identity, () => stopService(cluster, identity, context)),
        context.signal,
      ),
    restart: (handle, asked) => told(alone(handle.identity, () => restartService(cluster, handle, asked))),
    remove: (identity, _handle, context) =>
      told(
        alone(identity, () => removeService(cluster, identity, context)),
        context.signal,
      ),
    logs: (handle, options) => readLogs(cluster, handle, options),
    exec: (handle, request, signal) => told(execInService(cluster, handle, request, signal), signal),
    certificates: (hosts) => told(readCertificates(cluster, hosts)),
    metrics: (handle) => told(measureService(cluster, handle)),
    removeEnvironment: (identity) => told(removeEnvironment(cluster, identity)),
    list: () => told(listWorkloads(cluster)),
    close: () => connection.close(),
  };
}

/** Converts the errors of calls to the API server. */
async function told<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof RuntimeError ? error : asRuntimeError(error, signal);
  }
}

function refusals(spec: WorkloadSpec | TaskSpec): string[] {
  if (!('ports' in spec)) return ['Commands that run to their end do not run on Kubernetes yet: use a docker cluster.'];
  const refused: string[] = [];
  const texts = [...Object.values(spec.environment), ...spec.files.map(({ content }) => content)];
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes > MOST_SECRET_BYTES)
    refused.push(`Variables and files have ${bytes} bytes together, and Kubernetes takes ${MOST_SECRET_BYTES}.`);
  return refused;
}
