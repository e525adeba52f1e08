import { join } from 'node:path';
import type { PortRange } from '#kernel/port-range.ts';
import type { Router } from '#runtimes/router.ts';
import type { DiskLimits } from '#runtimes/tools/disk-limits.ts';
import type { FormerLogLimits } from '#runtimes/tools/former-logs.ts';
import { RuntimeError, requireWorkload } from '#runtimes/runtime.ts';
import type { LogLine, Runtime } from '#runtimes/runtime.ts';
import { DEFAULT_POOL, checkPool } from './address-pool.ts';
import { applySpec, restartRelease } from './apply.ts';
import { buildImage, hasImage, removeImages } from './build.ts';
import { trimCaches } from './caches.ts';
import { DockerDisk } from './disk-use.ts';
import { connect } from './connect.ts';
import { LOOPBACK } from './container-config.ts';
import { asRuntimeError } from './errors.ts';
import { DEFAULT_EGRESS_IMAGE } from './egress.ts';
import { execInService } from './exec.ts';
import { removeFillers } from './files.ts';
import { formerLogsIn } from './former-logs.ts';
import { removeService, stopService } from './lifecycle.ts';
import { listWorkloads } from './list.ts';
import { readLogs } from './logs.ts';
import { findHostAddress, removeEnvironmentNetwork } from './network.ts';
import { makeNode } from './node.ts';
import type { DockerNode } from './node.ts';
import { endpointsOfService, measureService, observeService } from './observe.ts';
import { refusals } from './refusals.ts';
import { replaceInstance, startReplacements } from './replace.ts';
import { report } from './report.ts';
import { makeSupervise } from './supervise.ts';
import { removeTasks, runTask } from './tasks.ts';
import { volumeContents } from './volume-contents.ts';

export interface DockerRuntimeOptions {
  /** Unix socket of the engine; either this or `host`. */
  socketPath?: string;
  /** `tcp://host:port` of a remote engine. Its published ports must be reachable from here. */
  host?: string;
  /** Id of this installation: objects without it in their labels are never touched. */
  installation: string;
  router: Router;
  /** Folder for the state of helper processes. */
  dataDir: string;
  /** IPv4 network from which environments get theirs; default 10.201.0.0/16. */
  addressPool?: string;
  /** Ports on which services may be published; default all. */
  publishedPorts?: PortRange;
  /** Maximum number of processes and threads of a container; default 1024. */
  processLimit?: number;
  /** Maximum size of a built image, and the reserve of the engine's disk if it is this machine's; default no limit. */
  buildDisk?: DiskLimits;
  /** Limits of the logs of ended instances; none is kept if absent. */
  formerLogs?: FormerLogLimits;
  /** Image with Node 24 or later for the proxies of executions. */
  egressImage?: string;
  /** Receives lines for the operator that belong to no deployment. */
  log(line: string): void;
}

/**
 * Creates the runtime for Docker Engine or Podman (docs/contributing/engine.md, *Runtimes → docker*). The engine need not answer yet:
 * `check` reports it. Throws if the options are invalid.
 */
export async function createDockerRuntime(options: DockerRuntimeOptions): Promise<Runtime> {
  const {
    socketPath,
    host,
    installation,
    router,
    dataDir,
    addressPool = DEFAULT_POOL,
    egressImage = DEFAULT_EGRESS_IMAGE,
    log,
  } = options;
  checkPool(addressPool);
  const address = socketPath === undefined ? { host } : { socketPath };
  const engine = connect({ socketPath, host });
  const node = makeNode(engine, {
    installation,
    router,
    pool: addressPool,
    egressImage,
    publishAddress: host === undefined ? LOOPBACK : new URL(host).hostname,
    publishedPorts: options.publishedPorts ?? null,
    ...(options.processLimit === undefined ? {} : { processLimit: options.processLimit }),
    buildDisk: options.buildDisk,
    supervise: makeSupervise({ engine, address, installation, dataDir }),
    formerLogs: formerLogsIn(join(dataDir, 'docker-logs'), options.formerLogs, log),
    log,
  });
  // After a reboot of the machine containers with probes run again, but without a watcher.
  await node
    .supervise()
    .catch((error: unknown) => log(`Liveness checks are not watched yet: ${asRuntimeError(error).message}`));
  return runtimeOf(node);
}

function runtimeOf(node: DockerNode): Runtime {
  /** Serialises calls for a service: a call that hung may return while the next one is made. */
  const alone = <T>({ serviceId }: { serviceId: string }, work: () => Promise<T>, signal: AbortSignal) =>
    answer(node.services.run(serviceId, work), signal);
  const disk = new DockerDisk(node);
  return {
    name: 'docker',
    check: () => report(node),
    refusals,
    submit: (spec, context) =>
      alone(spec.identity, async () => applySpec(node, requireWorkload(spec, 'docker'), context), context.signal),
    observe: (handle) => answer(observeService(node, handle)),
    stop: (identity, handle, context) =>
      alone(identity, () => stopService(node, identity, handle, context), context.signal),
    restart: (handle, asked, context) =>
      alone(handle.identity, () => restartRelease(node, handle, asked, context), context.signal),
    remove: (identity, handle, context) =>
      alone(identity, () => removeService(node, identity, handle, context), context.signal),
    formerLogs: ({ serviceId }, options) => node.formerLogs.read(serviceId, options),
    logs: (handle, options) => translated(readLogs(node, handle, options), options.signal),
    build: (spec, context) => answer(buildImage(node, spec, context), context.signal),
    exec: (handle, request, signal) => answer(execInService(node, handle, request, signal), signal),
    endpoints: (handle) => answer(endpointsOfService(node, handle)),
    metrics: (handle) => answer(measureService(node, handle)),
    hasImage: (_identity, image) => answer(hasImage(node, image)),
    removeImages: (identity, images) => answer(removeImages(node, identity, images)),
    run: (spec, context) => answer(runTask(node, spec, context), context.signal),
    removeTasks: (identity, names) => answer(removeTasks(node, identity, names)),
    hostAddress: (identity) => answer(findHostAddress(node, identity)),
    removeEnvironment: ({ environmentId }) => answer(removeEnvironmentNetwork(node, environmentId)),
    list: () => answer(listWorkloads(node)),
    removeBroken: () =>
      answer(
        Promise.all([removeFillers(node), startReplacements(node), node.formerLogs.sweep()]).then(() => undefined),
      ),
    volumes: volumeContents(node),
    diskUse: (signal) => answer(disk.measure(signal), signal),
    replaceInstance: (identity, instance, reason, context) =>
      alone(identity, () => replaceInstance(node, identity, instance, reason, context), context.signal),
    trimCaches: (limits, signal) => answer(trimCaches(node, limits, signal), signal),
    // Each call to the engine uses its own connection: nothing stays open.
    close: async () => undefined,
  };
}

async function answer<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw asRuntimeError(error, signal);
  }
}

async function* translated(lines: AsyncIterable<LogLine>, signal: AbortSignal): AsyncGenerator<LogLine> {
  try {
    yield* lines;
  } catch (error) {
    const known = asRuntimeError(error, signal);
    if (!(known instanceof RuntimeError && known.code === 'aborted')) throw known;
  }
}
