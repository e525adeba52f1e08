import { httpUrl } from '#platform/settings/address.ts';
import { ApiAnnouncement } from '#platform/machines/directory.ts';
import { requireMachine } from '#platform/machines/elsewhere.ts';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { startBackground } from '#app/background.ts';
import { openBase, type Base } from '#app/install.ts';
import { firstSteps, type FirstSteps } from '#clusters/first-steps.ts';
import { createMetrics } from '#app/operations.ts';
import { clusterNeeds } from '#app/clusters.ts';
import { BackgroundSwitch } from '#platform/installation/background-switch.ts';
import { startHeartbeat } from '#platform/installation/heartbeat.ts';
import { createImages } from '#services/images/registry-images.ts';
import { createRepositoryReader } from '#services/sources/repository-reader.ts';
import { allRoutes } from '#app/routes.ts';
import { allSockets } from '#app/sockets.ts';
import { kubernetesClusters } from '#app/kubernetes.ts';
import { createRuntimes, type Runtimes } from '#app/runtimes.ts';
import type { ClusterRef } from '#runtimes/runtime.ts';
import { NO_ROUTER } from '#runtimes/no-router.ts';
import { shutDown, type ShutdownStep } from '#kernel/shutdown.ts';
import { createResolver } from '#platform/dns/resolver.ts';
import { createSources } from '#app/git.ts';
import { machinePrograms } from '#app/terraform.ts';
import { createEventStreams } from '#delivery/stream/index.ts';
import { CANCELLATIONS, DEPLOYMENTS, PROGRESS, listenForEnds } from '#deployments/index.ts';
import { createSessions } from '#resources/enterprise-connection/index.ts';
import { RateLimiter } from '#platform/access/rate-limit.ts';
import { keepEmbeddedPostgres } from '#platform/database/kept-embedded.ts';
import { OUTBOX_CHANNEL } from '#platform/events/outbox.ts';
import { listening } from '#platform/http/listening.ts';
import { createServer } from '#platform/http/server.ts';
import type { Settings } from '#platform/settings/index.ts';
import { createOperationsServer } from '#platform/telemetry/operations-server.ts';
import { createTracer } from '#platform/telemetry/index.ts';

/** Milliseconds that the embedded PostgreSQL has to end in any case. */
const DATABASE_STOP_MS = 5_000;

/** The running program. */
export interface Running {
  base: Base;
  /** Settings as given, with the ports that the program listens on in place of 0. */
  settings: Settings;
  runtimes: Runtimes;
  /** Address of the API, null where this process has none (role worker). */
  url: string | null;
  operationsUrl: string;
  /** Set at the very first start. */
  first: FirstSteps | undefined;
  runtime: string;
  stop(): Promise<void>;
}

/** Starts the parts of the role in the order of their dependencies, and returns when the service is ready. */
export async function start(
  given: Settings,
  log: Logger,
  progress: (text: string) => void = () => undefined,
): Promise<Running> {
  // The ports that were taken for 0 are filled in, so that links lead to them.
  const settings = { ...given };
  const stops: ShutdownStep[] = [];
  const onStop = (name: string, run: () => Promise<unknown>, leastMs?: number) => stops.push({ name, run, leastMs });
  const readiness = { isStarted: false };
  const stop = () => {
    readiness.isStarted = false;
    return shutDown(stops, log);
  };
  try {
    const base = await openBase(settings, log, progress);
    onStop('database', () => base.close(), DATABASE_STOP_MS);
    if (base.embedded) onStop('watch of PostgreSQL', keepEmbeddedPostgres(base.embedded, log));
    onStop('heartbeat', await startHeartbeat(base.platform, base.nodeId, settings.temporaryData));
    const tracer = await createTracer(settings.otlpEndpoint, base.nodeId, log);
    onStop('traces', () => tracer.close());
    const ownRouter = settings.temporaryData ? async () => NO_ROUTER : undefined;
    const connected = kubernetesClusters(base);
    const runtimes = createRuntimes(settings, base.installation.id, log, ownRouter, connected);
    onStop('runtimes', () => runtimes.close());
    const runtime = await runtimes.choose();
    const sources = createSources(base.platform);
    const metrics = createMetrics(base.database.db, settings);
    const operations = createOperationsServer(base.database.db, metrics.registry, readiness);
    await listening('operationsPort', settings, () => listen(operations, settings));
    onStop('operations server', () => new Promise((resolve) => operations.close(resolve)));
    if (settings.role !== 'api')
      settings.proxyPort = (await listening('proxyPort', settings, () => runtimes.router())).port;
    let url: string | null = null;
    if (settings.role !== 'worker') {
      const streams = createEventStreams({
        platform: base.platform,
        directConfig: base.directConfig,
        channels: [PROGRESS, DEPLOYMENTS, CANCELLATIONS, OUTBOX_CHANNEL],
      });
      onStop('event streams', () => streams.close());
      metrics.watchStreams(streams.count);
      onStop('ends of deployments', listenForEnds(base.database.db, base.directConfig, log));
      const needs = {
        streams,
        repositories: createRepositoryReader(sources),
        storeFolder: sources.storeFolder,
        images: createImages(base.platform),
        resolver: createResolver(settings.dnsServers),
        machineId: base.nodeId,
        runtimeOf: async (cluster: ClusterRef & { nodeId: string | null }) => {
          requireMachine(base.nodeId, cluster.nodeId);
          return runtimes.runtimeOf(cluster);
        },
        terraformPrograms: machinePrograms(settings),
        ...clusterNeeds(base.nodeId),
      };
      const server = createServer({
        platform: base.platform,
        sessions: await createSessions(base.platform),
        limiter: new RateLimiter(base.database.db, settings.rateLimitPerHour),
        routes: allRoutes(needs),
        sockets: allSockets(needs),
        log,
        tracer,
        onAnswer: metrics.answered,
      });
      url = await listening('port', settings, () => server.listen({ host: settings.host, port: settings.port }));
      onStop('API server', () => server.close());
      if (settings.machineUrl) {
        const announcement = new ApiAnnouncement(base.database.db, base.nodeId, settings.machineUrl, log);
        onStop('announcement of the API', () => announcement.stop());
        await announcement.start();
      }
      settings.port = Number(new URL(url).port);
    }
    // Only now, as its token is shown once: what could fail is behind us.
    const first = await firstSteps(base, runtime);
    if (settings.role !== 'api') {
      const begin = () => startBackground(base, runtimes, sources, tracer, metrics.registry);
      const background = await base.patiently(() => BackgroundSwitch.start(base, begin));
      onStop('background', () => background.stop());
    }
    const operationsUrl = httpUrl(settings.host, settings.operationsPort);
    readiness.isStarted = true;
    return { base, settings, runtimes, url, operationsUrl, first, runtime, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function listen(server: import('node:http').Server, settings: Settings): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(settings.operationsPort, settings.host, resolve);
  });
  settings.operationsPort = (server.address() as AddressInfo).port;
}
