import { withDeadline, type Deadline } from '#kernel/deadline.ts';
import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import { READ_ONLY_CODE } from '#platform/installation/index.ts';
import { Periodic } from '#platform/work/periodic.ts';
import {
  addRequests,
  addSamples,
  findLook,
  listMeasured,
  replaceLook,
  type Measured,
} from '#services/metrics/queries.ts';
import { CpuReadings, sampleOf, type Sample } from '#services/metrics/sample.ts';
import type { Router } from '#runtimes/router.ts';
import { RuntimeError, type ClusterRef, type ClusterRuntimes, type Handle } from '#runtimes/runtime.ts';

/** Milliseconds between two measurements of a service. */
const LOOK_MS = 60_000;
/** Services of one cluster that are measured at a time, and seconds that one of them may take. */
const AT_ONCE = 8;
const ANSWER_SECONDS = 15;

type Cluster = ClusterRef & { id: string };

/** Parts of a sampler. */
export interface SamplerParts {
  platform: Platform;
  runtimes: ClusterRuntimes & { router(): Promise<Router> };
  nodeId: string;
  /** Lists the clusters of this machine, and those of no machine that it watches. */
  listClusters(db: Database, nodeId: string): Promise<Cluster[]>;
  /** Seconds that a cluster has to measure one service; 15 without. */
  answerSeconds?: number;
}

/** Measures the services on the clusters of this machine every minute, and stores what it finds. */
export class MetricSampler {
  readonly #parts: SamplerParts;
  readonly #ending = new AbortController();
  readonly #readings = new CpuReadings();
  /** Services whose clusters have not answered yet. They are asked again once they have. */
  readonly #unanswered = new Set<string>();
  /** Clusters that have not told yet what their gateways have counted. */
  readonly #uncounted = new Set<string>();
  readonly #looks: Periodic;

  constructor(parts: SamplerParts) {
    this.#parts = parts;
    this.#looks = new Periodic(
      LOOK_MS,
      () => this.#lookOnce(),
      (error) => this.#warn(error, {}),
    );
  }

  start(): void {
    this.#looks.start();
  }

  stop(): Promise<void> {
    this.#ending.abort();
    return this.#looks.stop();
  }

  /** Measures once; a look that is under way already is joined. */
  look(): Promise<void> {
    return this.#looks.look();
  }

  async #lookOnce(): Promise<void> {
    const { platform, nodeId, listClusters } = this.#parts;
    const clusters = await listClusters(platform.db, nodeId);
    const ids = clusters.map(({ id }) => id);
    const services = Map.groupBy(await listMeasured(platform.db, ids), ({ cluster_id: id }) => id);
    // Side by side: a cluster that does not answer keeps none of the others waiting.
    const looks = clusters.flatMap((cluster) => {
      const own = services.get(cluster.id) ?? [];
      return [this.#lookAt(cluster, own), this.#countAtGateway(cluster, own)];
    });
    await Promise.all([...looks, this.#countRequests()]);
    this.#readings.turn();
  }

  /** Stores the requests that the proxy of this machine has answered since the last look. */
  async #countRequests(): Promise<void> {
    const seconds = ANSWER_SECONDS;
    const late = (cause: unknown) => new Error(`The proxy has not told its requests within ${seconds} s.`, { cause });
    try {
      const counts = await withDeadline(this.#ending.signal, { seconds, patience: () => 0, late }, async () =>
        (await this.#parts.runtimes.router()).requests(),
      );
      if (counts && counts.services.length > 0) await addRequests(this.#parts.platform.db, counts);
    } catch (error) {
      this.#warn(error, {});
    }
  }

  /** Stores the requests that the gateway of a cluster has counted since the last look of any process. */
  async #countAtGateway(cluster: Cluster, services: Measured[]): Promise<void> {
    const { answerSeconds: seconds = ANSWER_SECONDS } = this.#parts;
    const late = (cause: unknown) =>
      new Error(`The cluster has not told the requests of its gateway within ${seconds} s.`, { cause });
    if (services.length === 0 || this.#uncounted.has(cluster.id)) return;
    this.#uncounted.add(cluster.id);
    try {
      await withDeadline(this.#ending.signal, { seconds, patience: () => 0, late }, (deadline) =>
        this.#addFromGateway(cluster, services, deadline).finally(() => this.#uncounted.delete(cluster.id)),
      );
    } catch (error) {
      // The check of the cluster says what the account lacks.
      if (!isRefused(error)) this.#warn(error, { clusterId: cluster.id });
    }
  }

  async #addFromGateway(cluster: Cluster, services: Measured[], deadline: Deadline): Promise<void> {
    const { db } = this.#parts.platform;
    const runtime = await this.#parts.runtimes.runtimeOf(cluster);
    if (!runtime.requests) return;
    const last = await findLook(db, cluster.id);
    const handles = services.map(({ handle }) => handle as Handle).filter((one) => one.runtime === runtime.name);
    const found = await runtime.requests(handles, last, deadline.signal);
    if (!found || !deadline.holds()) return;
    await inTransaction(systemContext(this.#parts.platform), async (context) => {
      const isOurs = await replaceLook(context.db, cluster.id, last, found.look);
      if (isOurs && found.counts && found.counts.services.length > 0) await addRequests(context.db, found.counts);
    });
    for (const problem of found.problems) this.#warn(new Error(problem), { clusterId: cluster.id });
  }

  async #lookAt(cluster: Cluster, services: Measured[]): Promise<void> {
    const samples: Sample[] = [];
    const failures: unknown[] = [];
    const left = services.filter(({ id }) => !this.#unanswered.has(id)).values();
    let isSilent = false;
    const work = async () => {
      for (const service of left) {
        if (this.#ending.signal.aborted || isSilent) return;
        try {
          const sample = await this.#ask(cluster, service);
          if (sample) samples.push(sample);
        } catch (error) {
          failures.push(error);
          // The others of this cluster would wait for nothing as well.
          isSilent = this.#unanswered.has(service.id);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (failures.length > 0) this.#warn(failures[0], { clusterId: cluster.id, services: failures.length });
    try {
      if (samples.length > 0) await addSamples(this.#parts.platform.db, samples);
    } catch (error) {
      this.#warn(error, { clusterId: cluster.id });
    }
  }

  /** Measures a service. Throws if its cluster does not answer in time, and lets go of what does not end. */
  #ask(cluster: Cluster, service: Measured): Promise<Sample | null> {
    const { answerSeconds: seconds = ANSWER_SECONDS } = this.#parts;
    const late = (cause: unknown) => new Error(`The cluster has not answered within ${seconds} s.`, { cause });
    this.#unanswered.add(service.id);
    return withDeadline(this.#ending.signal, { seconds, patience: () => 0, late }, () =>
      this.#measure(cluster, service).finally(() => this.#unanswered.delete(service.id)),
    );
  }

  async #measure(cluster: Cluster, { id, handle: stored }: Measured): Promise<Sample | null> {
    const runtime = await this.#parts.runtimes.runtimeOf(cluster);
    const handle = stored as Handle;
    // What another kind of runtime made has no instances here.
    if (handle.runtime !== runtime.name) return null;
    const [observation, metrics] = await Promise.all([
      runtime.observe(handle),
      runtime.metrics?.(handle).catch(nullIfRefused) ?? null,
    ]);
    return sampleOf(id, observation, metrics, this.#readings);
  }

  #warn(error: unknown, fields: object): void {
    const isExpected = this.#ending.signal.aborted || (error as { code?: string }).code === READ_ONLY_CODE;
    if (!isExpected) this.#parts.platform.log.warn({ err: error, ...fields }, 'cannot measure services');
  }
}

/** Answers null where a cluster cannot measure instances, such as without metrics-server. */
function nullIfRefused(error: unknown): null {
  if (isRefused(error)) return null;
  throw error;
}

const isRefused = (error: unknown): boolean => error instanceof RuntimeError && error.code === 'refused';
