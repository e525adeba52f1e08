import { isDeepStrictEqual } from 'node:util';
import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { selectPlace } from '#deployments/queries.ts';
import type { DeploymentPlace } from '#deployments/request.ts';
import { ClusterFollower } from '#deployments/watchers/cluster-follower.ts';
import {
  dropObserved,
  noteObserved,
  observedWarnings,
  type ObservedWarnings,
} from '#deployments/watchers/observed-warnings.ts';
import { Periodic } from '#platform/work/periodic.ts';
import type { Capabilities, ClusterRef, ClusterRuntimes, Handle, Observation } from '#runtimes/runtime.ts';

const LOOK_MS = 30_000;
/** Services that are observed at a time, and milliseconds that one of them may take. */
const OBSERVED_AT_ONCE = 8;
const OBSERVE_MS = 10_000;

/** A service that should run on a cluster of this machine, and that no request is under way for. */
interface Wanted {
  id: string;
  organization_id: string;
  environment_id: string;
  handle: unknown;
  cluster_id: string;
  runtime: string;
  stage: number;
  /** True if a restore holds it back. */
  held: boolean;
  /** True if it was asked for again within the last ten minutes: it is left alone until they are over. */
  resting: boolean;
  /** True if that request failed. */
  failed: boolean;
  /** Warnings that were shown last. */
  warnings: ObservedWarnings;
  /** True if its cluster wants what others changed to be put back at once. */
  corrects: boolean;
}

/** Requests for services of one environment that run no longer. */
export interface StartAgain {
  /** Requests a restart of services whose workloads are stopped. */
  restart(context: Context, place: DeploymentPlace, serviceIds: string[]): Promise<unknown>;
  /** Requests the last releases of services of which nothing is left. */
  rollBack(context: Context, place: DeploymentPlace, serviceIds: string[]): Promise<void>;
}

/** Cluster that this machine watches. */
interface Watched {
  id: string;
  runtime: string;
  /** True if no other cluster shares its runtime. */
  isApart: boolean;
}

/** Records of the clusters that this machine watches. */
export interface MachineRecords {
  /** Lists the clusters of this machine, and those of no machine that it watches for the next time. */
  listClusters(db: Database, nodeId: string): Promise<Watched[]>;
  /** Records that the runtime of clusters has answered, and what it can do now. */
  noteReached(db: Database, clusterIds: string[], found: Capabilities): Promise<unknown>;
}

/** Service that is to be requested again: with RESTART if something of it is left, else with ROLLBACK. */
interface Missing extends Wanted {
  trigger: 'RESTART' | 'ROLLBACK';
}

export interface WatcherParts {
  platform: Platform;
  runtimes: ClusterRuntimes;
  nodeId: string;
  machine: MachineRecords;
  again: StartAgain;
  /** Milliseconds that the observation of one service may take. */
  observeMs?: number;
}

/**
 * Looks at what should run on this machine and requests again what is gone: after a reboot, or after a removal outside Quarterdeck.
 * Level-triggered: it needs no other input than the facts. An environment's services are requested together, so that its stages hold.
 */
export class RunningWatcher {
  readonly #platform: Platform;
  readonly #runtimes: ClusterRuntimes;
  readonly #nodeId: string;
  readonly #machine: MachineRecords;
  readonly #again: StartAgain;
  readonly #observeMs: number;
  /** Questions that runtimes have not answered yet; they are not asked again meanwhile. */
  readonly #asked = new Set<string>();
  readonly #follower: ClusterFollower;
  readonly #looks: Periodic;
  #stopped = false;

  constructor({ platform, runtimes, nodeId, machine, again, observeMs = OBSERVE_MS }: WatcherParts) {
    this.#platform = platform;
    this.#runtimes = runtimes;
    this.#nodeId = nodeId;
    this.#machine = machine;
    this.#again = again;
    this.#observeMs = observeMs;
    this.#looks = new Periodic(
      LOOK_MS,
      () => this.#lookOnce(),
      (error) => platform.log.warn({ err: error }, 'cannot look after what should run'),
    );
    this.#follower = new ClusterFollower({
      platform,
      open: (cluster) => this.#askOnce(`watch ${cluster.id}`, () => runtimes.runtimeOf(cluster)),
      look: (clusterIds, serviceIds) => this.#lookAt(clusterIds, serviceIds),
    });
  }

  start(): void {
    this.#looks.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([this.#looks.stop(), this.#follower.stop()]);
  }

  /** Looks once; a look that is under way already is joined. */
  look(): Promise<void> {
    return this.#looks.look();
  }

  async #lookOnce(): Promise<void> {
    const { db } = this.#platform;
    const clusters = await this.#machine.listClusters(db, this.#nodeId);
    await Promise.all([this.#noteReached(clusters), this.#follower.follow(clusters.filter(({ isApart }) => isApart))]);
    const ids = clusters.map(({ id }) => id);
    await dropObserved(db, ids);
    const wanted = await listWanted(db, ids);
    const missing = await this.#findMissing(wanted);
    // What failed just now is missing, too: what comes after it in its environment waits until both are asked for together.
    const failed = wanted.filter((service) => service.failed);
    const awaits = (one: Missing) =>
      failed.some((other) => other.environment_id === one.environment_id && other.stage < one.stage);
    const due = Map.groupBy(
      missing.filter((one) => !awaits(one)),
      (service) => service.environment_id,
    );
    for (const services of due.values()) {
      if (this.#stopped) return;
      await this.#ask(services).catch((error: unknown) =>
        this.#platform.log.warn(
          { err: error, environmentId: services[0]!.environment_id },
          'cannot start services again',
        ),
      );
    }
  }

  /** Looks at some services of followed clusters. What is missing is asked for by a look at all, so that stages hold. */
  async #lookAt(clusterIds: string[], serviceIds: string[]): Promise<string[]> {
    const { db } = this.#platform;
    const busy = await listBusy(db, clusterIds, serviceIds);
    const missing = await this.#findMissing(await listWanted(db, clusterIds, serviceIds));
    // One that is under way may have passed them already.
    if (missing.length > 0) void this.#looks.settled().then(() => this.look());
    return busy;
  }

  /** Observes several services at a time, and notes what is told of those in followed clusters. */
  async #findMissing(services: Wanted[]): Promise<Missing[]> {
    const missing: Missing[] = [];
    const isFollowed = ({ cluster_id }: Wanted) => this.#follower.has(cluster_id);
    const left = services.filter((service) => !service.resting || isFollowed(service)).values();
    const observeRest = async () => {
      for (const service of left) {
        if (this.#stopped) return;
        try {
          const observation = await this.#observe(service);
          const { state, drift = [] } = observation;
          if (isFollowed(service)) await noteObserved(this.#platform.db, service, observation);
          if (service.resting) continue;
          if (service.held) {
            // After a restore what does not run may be meant not to: it is left alone until it was seen running, or is deployed.
            if (state === 'running') await this.#release(service.organization_id, service.id);
          } else if (state === 'stopped') missing.push({ ...service, trigger: 'RESTART' });
          // Nothing is left that could be restarted.
          else if (state === 'absent' || (service.corrects && drift.length > 0))
            missing.push({ ...service, trigger: 'ROLLBACK' });
        } catch (error) {
          this.#platform.log.warn({ err: error, serviceId: service.id }, 'cannot observe a service');
        }
      }
    };
    await Promise.all(Array.from({ length: OBSERVED_AT_ONCE }, observeRest));
    return missing;
  }

  #observe({ id, cluster_id, runtime, handle }: Wanted): Promise<Observation> {
    const cluster: ClusterRef = { id: cluster_id, runtime };
    const ask = async () => (await this.#runtimes.runtimeOf(cluster)).observe(handle as Handle);
    // A look at all and one at what has changed may meet; answers mostly come from memory.
    return this.#follower.has(cluster_id) ? inTime(ask(), this.#observeMs) : this.#askOnce(`service ${id}`, ask);
  }

  /** Throws if the runtime does not answer in time: a runtime that hangs must not hold up the others. */
  #askOnce<T>(what: string, ask: () => Promise<T>): Promise<T> {
    if (this.#asked.has(what))
      return Promise.reject(new Error('The runtime has not answered since it was asked before.'));
    this.#asked.add(what);
    return inTime(
      ask().finally(() => this.#asked.delete(what)),
      this.#observeMs,
    );
  }

  /** Records the clusters whose runtime answers. One that does not is left as it was: an outage writes nothing. */
  async #noteReached(clusters: Watched[]): Promise<void> {
    const { db } = this.#platform;
    // Clusters of this machine share its runtimes: each is asked once.
    const byRuntime = Map.groupBy(clusters, ({ id, runtime, isApart }) => (isApart ? id : runtime));
    const noteSharing = async ([name, sharing]: [string, Watched[]]) => {
      if (this.#stopped) return;
      const ask = async () => (await this.#runtimes.runtimeOf(sharing[0]!)).check({ isQuick: true });
      const report = await this.#askOnce(`runtime ${name}`, ask).catch(() => undefined);
      const ids = sharing.map(({ id }) => id);
      if (report?.ok) await this.#machine.noteReached(db, ids, report);
    };
    // At once: clusters that do not answer keep none of the others waiting.
    await Promise.all([...byRuntime].map(noteSharing));
  }

  async #release(organizationId: string, serviceId: string): Promise<void> {
    await this.#platform.db
      .updateTable('service')
      .set({ restored_at: null })
      .where('organization_id', '=', organizationId)
      .where('id', '=', serviceId)
      .execute();
  }

  /** Asks again for what ran in an environment, never for what was configured since. */
  async #ask(services: Missing[]): Promise<void> {
    await inTransaction(systemContext(this.#platform), async (context) => {
      const { organization_id: organizationId, environment_id: environmentId } = services[0]!;
      const place = await selectPlace(context.db, { organizationId }, environmentId)
        .forUpdate('environment')
        .executeTakeFirst();
      if (!place) return;
      // Requests are made under this lock: what was asked for since the observation is seen now, a stop or a deployment among it.
      const now = await listWanted(
        context.db,
        services.map((service) => service.cluster_id),
        services.map(({ id }) => id),
      );
      const due = services.filter(({ id, handle }) =>
        now.some((one) => one.id === id && !one.held && !one.resting && isDeepStrictEqual(one.handle, handle)),
      );
      if (due.length === 0) return;
      const ids = due.map(({ id }) => id);
      this.#platform.log.info(
        { serviceIds: ids },
        'services that should run are not there any more: they are started again',
      );
      const of = (trigger: Missing['trigger']) => due.filter((service) => service.trigger === trigger);
      const [stopped, absent] = [of('RESTART'), of('ROLLBACK')];
      const restart = () =>
        this.#again.restart(
          context,
          place,
          stopped.map(({ id }) => id),
        );
      const first = (all: Missing[]) => Math.min(...all.map(({ stage }) => stage));
      // One runs after the other: what has the earlier stage goes first.
      const restartsFirst = stopped.length > 0 && first(stopped) <= first(absent);
      if (restartsFirst) await restart();
      await this.#again.rollBack(
        context,
        place,
        absent.toSorted((a, b) => a.stage - b.stage).map(({ id }) => id),
      );
      if (stopped.length > 0 && !restartsFirst) await restart();
    });
  }
}

/** Services that should run on the clusters and that no request is under way for; all of them, or those of these ids. */
async function listWanted(db: Database, clusterIds: string[], ids?: string[]): Promise<Wanted[]> {
  const since = sql`ds.service_id = service.id and d.trigger in ('RESTART', 'ROLLBACK') and d.automatic
    and d.ended_at > now() - interval '10 minutes'`;
  const recently = (more: ReturnType<typeof sql>) => sql<boolean>`exists (select 1 from deployment_service ds
    join deployment d on d.id = ds.deployment_id where ${since} and ${more})`;
  return (
    db
      .selectFrom('service')
      .innerJoin('environment', 'environment.id', 'service.environment_id')
      .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
      .innerJoin('deployment_stage as stage', 'stage.id', 'service.stage_id')
      .select([
        'service.id',
        'service.organization_id',
        'service.environment_id',
        'service.handle',
        'cluster.id as cluster_id',
        'cluster.runtime',
        'stage.position as stage',
      ])
      .select(
        sql<boolean>`service.restored_at is not null and not exists (select 1 from deployment_service ds
        where ds.service_id = service.id and ds.created_at > service.restored_at)`.as('held'),
      )
      // One that was cancelled because another one failed has not failed itself.
      .select(recently(sql`(ds.state <> 'CANCELED' or d.cancel_requested_at is not null)`).as('resting'))
      .select(recently(sql`ds.state like '%\\_ERROR'`).as('failed'))
      .select(observedWarnings.as('warnings'))
      .select(
        sql<boolean>`coalesce((cluster.advanced_settings ->> 'k8s.drift.correct_at_once')::boolean, false)`.as(
          'corrects',
        ),
      )
      .where('cluster.id', '=', sql<string>`any(${clusterIds})`)
      .where('cluster.locked_at', 'is', null)
      .where('service.wanted', '=', 'running')
      .where('service.handle', 'is not', null)
      .where('service.deleting', '=', false)
      .where(sql<boolean>`coalesce((service.spec ->> 'min_running_instances')::int, 1) > 0`)
      .where(
        sql<boolean>`not exists (select 1 from deployment_service ds join deployment d on d.id = ds.deployment_id
        where ds.service_id = service.id and d.status <> 'ENDED')`,
      )
      .$if(ids !== undefined, (query) => query.where('service.id', '=', sql<string>`any(${ids})`))
      .execute()
  );
}

/** Returns those of the services that a request is under way for. */
async function listBusy(db: Database, clusterIds: string[], serviceIds: string[]): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select s.id from service s join environment e on e.id = s.environment_id
    where s.id = any(${serviceIds}::uuid[]) and e.cluster_id = any(${clusterIds}::uuid[])
      and exists (select from deployment_service ds join deployment d on d.id = ds.deployment_id
        where ds.service_id = s.id and d.status <> 'ENDED')`.execute(db);
  return rows.map(({ id }) => id);
}

async function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`The runtime did not answer within ${ms / 1000} s.`)), ms);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
