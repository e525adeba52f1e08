import path from 'node:path';
import type { Logger } from 'pino';
import { embeddedBinaries } from '#platform/database/embedded.ts';
import { publishedRange } from '#platform/settings/port-range.ts';
import { hiddenFrom } from '#platform/settings/hidden-files.ts';
import type { Settings } from '#platform/settings/index.ts';
import { addressOfEngine } from '#runtimes/docker/socket.ts';
import type { ConnectedClusters } from '#clusters/connected.ts';
import { createRouter, stopProxy } from '#runtimes/proxy/index.ts';
import type { Router } from '#runtimes/router.ts';
import { diskLimits } from '#runtimes/tools/disk-limits.ts';
import { RuntimeError, type ClusterRuntimes, type MachineRuntimes, type Runtime } from '#runtimes/runtime.ts';

type Name = Runtime['name'];

/** Runtimes of this machine. Each is created when it is first used. */
export interface Runtimes extends ClusterRuntimes, MachineRuntimes {
  router(): Promise<Router>;
  /** Runtime for the first cluster: what the setting names, else Docker where an engine answers, else the host. */
  choose(): Promise<'docker' | 'host' | 'kubernetes' | 'fake'>;
  /** Releases all resources of the runtimes; workloads go on. */
  close(): Promise<void>;
  /** Ends the reverse proxy, for when nothing is deployed any more. */
  endProxy(): Promise<void>;
}

/** Creates the runtimes of this machine. `ownRouter` replaces the node's own proxy; `connected` has runtimes of other clusters. */
export function createRuntimes(
  settings: Settings,
  installation: string,
  log: Logger,
  ownRouter?: Runtimes['router'],
  connected?: ConnectedClusters,
): Runtimes {
  const line = (text: string) => log.info(text);
  const made = new Map<Name, Promise<Runtime>>();
  let routing: Promise<Router & { close(): Promise<void> }> | undefined;
  const nodeRouter = () =>
    (routing ??= createRouter({
      directory: path.join(settings.dataDir, 'proxy'),
      host: settings.proxyHost,
      port: settings.proxyPort,
      program: settings.proxy,
      https: {
        port: settings.proxyHttpsPort,
        directoryUrl: settings.acmeDirectory,
        email: settings.acmeEmail,
        rootsFile: settings.acmeRootsFile,
      },
      trustedProxies: settings.trustedProxies,
      log: line,
      watchLog: log,
    }));
  // A failed start was already reported to the caller of `router`.
  const closeRouter = async () => (await routing?.catch(() => undefined))?.close();
  const router = ownRouter ?? nodeRouter;
  const engine = () => addressOfEngine(settings.dockerHost || undefined);
  const options = {
    dataDir: settings.dataDir,
    installation,
    log: line,
    publishedPorts: publishedRange(settings),
    processLimit: settings.processLimit,
    buildDisk: diskLimits(settings, settings.buildLimitMb),
    formerLogs: { hours: settings.formerLogHours, serviceBytes: settings.formerLogLimitMb * 2 ** 20 },
  };

  // Each is loaded with the first cluster on it: what drives Docker takes 16 MB.
  const make = async (name: string): Promise<Runtime> => {
    switch (name) {
      case 'host': {
        const { createHostRuntime } = await import('#runtimes/host/index.ts');
        return createHostRuntime({
          ...options,
          router: await router(),
          hidden: hiddenFrom(settings),
          postgresql: embeddedBinaries(),
        });
      }
      case 'docker': {
        const address = await engine();
        if (!address)
          throw new RuntimeError(
            'unreachable',
            'No Docker Engine or Podman answers on this machine: start it, or set DOCKER_HOST.',
          );
        const { createDockerRuntime } = await import('#runtimes/docker/index.ts');
        const { egressImage } = settings;
        return createDockerRuntime({ ...address, ...options, router: await router(), egressImage });
      }
      case 'fake': {
        const { createFakeRuntime } = await import('#runtimes/fake/index.ts');
        return createFakeRuntime({ router: await router(), directory: path.join(settings.dataDir, 'fake') });
      }
      default:
        throw new RuntimeError('refused', `There is no runtime ${name} on this machine.`);
    }
  };
  const onMachine = (name: string): Promise<Runtime> => {
    const key = name as Name;
    const present = made.get(key);
    if (present) return present;
    const fresh = make(name);
    made.set(key, fresh);
    // A failed runtime is tried again on the next call: an engine may have been started meanwhile.
    fresh.catch(() => made.delete(key));
    return fresh;
  };
  return {
    onMachine,
    runtimeOf: async (cluster) =>
      cluster.runtime === 'kubernetes' && connected ? connected.runtimeOf(cluster) : onMachine(cluster.runtime),
    router,
    choose: async () => {
      if (settings.runtime !== 'auto') return settings.runtime;
      return (await engine()) ? 'docker' : 'host';
    },
    close: async () => {
      for (const runtime of made.values())
        await runtime.then(
          (ready) => ready.close(),
          () => undefined,
        );
      await connected?.close();
      await closeRouter();
    },
    endProxy: async () => {
      // It would be started again.
      await closeRouter();
      await stopProxy(path.join(settings.dataDir, 'proxy'));
    },
  };
}
