import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { startBackground } from '#app/background.ts';
import { firstSteps, openBase, tokenFile, type Base, type FirstSteps } from '#app/install.ts';
import { createMetrics, createOperationsServer } from '#app/operations.ts';
import { clusterNeeds } from '#app/clusters.ts';
import { createRepositoryReader } from '#app/repositories.ts';
import { allRoutes } from '#app/routes.ts';
import { createRuntimes, type Runtimes } from '#app/runtimes.ts';
import { createSources } from '#app/sources.ts';
import { createSessionVerifier } from '#platform/access/oidc.ts';
import { RateLimiter } from '#platform/access/rate-limit.ts';
import { createServer } from '#platform/http/server.ts';
import type { Settings } from '#platform/settings/index.ts';

/** The running program. */
export interface Running {
  base: Base;
  runtimes: Runtimes;
  /** Address of the API, null where this process has none (role worker). */
  url: string | null;
  operationsUrl: string;
  /** Set at the very first start. */
  first: FirstSteps | undefined;
  runtime: string;
  stop(): Promise<void>;
}

/** Starts what the role asks for, in an order in which each part finds what it needs, and answers when it is ready. */
export async function start(
  settings: Settings,
  log: Logger,
  progress: (text: string) => void = () => undefined,
): Promise<Running> {
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const step of stops.reverse()) await step();
  };
  try {
    const base = await openBase(settings, log, progress);
    stops.push(() => base.close());
    const runtimes = createRuntimes(settings, base.installation.id, log);
    stops.push(() => runtimes.close());
    const runtime = await runtimes.choose();
    const first = await firstSteps(base, runtime);
    const sources = createSources(base.platform);
    const metrics = createMetrics(base.database.db);
    const operations = createOperationsServer(base.database.db, metrics);
    const operationsUrl = await listen(operations, settings.host, settings.operationsPort);
    stops.push(() => new Promise((resolve) => operations.close(resolve)));

    if (settings.role !== 'api') stops.push(await startBackground(base, runtimes, sources));
    let url: string | null = null;
    if (settings.role !== 'worker') {
      const server = createServer({
        platform: base.platform,
        sessions: createSessionVerifier(base.platform),
        limiter: new RateLimiter(base.database.db, settings.rateLimitPerHour),
        routes: allRoutes({
          repositories: createRepositoryReader(sources),
          runtimeOf: (cluster) => runtimes.get(cluster.runtime),
          ...clusterNeeds(base.nodeId),
        }),
        log,
        onAnswer: metrics.answered,
      });
      url = await server.listen({ host: settings.host, port: settings.port });
      stops.push(() => server.close());
    }
    return { base, runtimes, url, operationsUrl, first, runtime, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function listen(server: import('node:http').Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return `http://${host}:${(server.address() as AddressInfo).port}`;
}

export { tokenFile };
