import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import type { Runtimes } from '#app/runtimes.ts';
import { submit } from '#services/capabilities/actions/request.ts';
import { requestLastRelease } from '#services/capabilities/rollback/index.ts';
import type { Handle } from '#runtimes/runtime.ts';

const LOOK_MS = 30_000;

/**
 * Looks at what should run on this machine and asks for it again where nothing of it is left: after a reboot, or when somebody removed it behind
 * our back (engine.md, *Runtimes → host*). Level-triggered: it needs no other input than the facts.
 */
export class RunningWatcher {
  readonly #platform: Platform;
  readonly #runtimes: Pick<Runtimes, 'get'>;
  readonly #nodeId: string;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #stopped = false;

  constructor(platform: Platform, runtimes: Pick<Runtimes, 'get'>, nodeId: string) {
    this.#platform = platform;
    this.#runtimes = runtimes;
    this.#nodeId = nodeId;
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), LOOK_MS);
    void this.look();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#looking;
  }

  /** Looks once; a look that is under way already is joined. */
  look(): Promise<void> {
    return (this.#looking ??= this.#lookOnce()
      .catch((error: unknown) => this.#platform.log.warn({ err: error }, 'cannot look after what should run'))
      .finally(() => (this.#looking = undefined)));
  }

  async #lookOnce(): Promise<void> {
    const { db } = this.#platform;
    await db
      .updateTable('node')
      .set({ seen_at: sql`now()` })
      .where('id', '=', this.#nodeId)
      .execute();
    await this.#noteReached();
    for (const service of await this.#listWanted()) {
      if (this.#stopped) return;
      try {
        const runtime = await this.#runtimes.get(service.runtime);
        const seen = await runtime.observe(service.handle as Handle);
        // After a restore what does not run may be meant not to: it is left alone until it was seen running, or is deployed.
        if (service.held) {
          if (seen.state === 'running') await this.#release(service.organization_id, service.id);
        } else if (seen.state === 'stopped') await this.#ask('RESTART', service.id, service.environment_id);
        // Nothing is left that could be restarted.
        else if (seen.state === 'absent') await this.#ask('ROLLBACK', service.id, service.environment_id);
      } catch (error) {
        this.#platform.log.warn({ err: error, serviceId: service.id }, 'cannot observe a service');
      }
    }
  }

  /** Clusters of this machine whose runtime answers. One that does not is left as it was: an outage writes nothing (engine.md). */
  async #noteReached(): Promise<void> {
    const { db } = this.#platform;
    const clusters = await db
      .selectFrom('cluster')
      .select(['id', 'runtime'])
      .where('node_id', '=', this.#nodeId)
      .execute();
    const answering: string[] = [];
    for (const name of new Set(clusters.map((cluster) => cluster.runtime))) {
      const report = await this.#runtimes
        .get(name)
        .then((runtime) => runtime.check())
        .catch(() => undefined);
      if (report?.ok) answering.push(name);
    }
    const ids = clusters.filter((cluster) => answering.includes(cluster.runtime)).map((cluster) => cluster.id);
    if (ids.length === 0) return;
    await db
      .updateTable('cluster')
      .set({ reached_at: sql`now()` })
      .where('id', '=', sql<string>`any(${ids})`)
      .execute();
  }

  /** Services that should run here and that no request is under way for; one whose last restart of ours failed is left alone for ten minutes. */
  #listWanted() {
    return this.#platform.db
      .selectFrom('service')
      .innerJoin('environment', 'environment.id', 'service.environment_id')
      .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
      .select(['service.id', 'service.organization_id', 'service.environment_id', 'service.handle', 'cluster.runtime'])
      .select(
        sql<boolean>`service.restored_at is not null and not exists (select 1 from deployment_service ds
          where ds.service_id = service.id and ds.created_at > service.restored_at)`.as('held'),
      )
      .where('cluster.node_id', '=', this.#nodeId)
      .where('cluster.locked_at', 'is', null)
      .where('service.wanted', '=', 'running')
      .where('service.handle', 'is not', null)
      .where('service.deleting', '=', false)
      .where(sql<boolean>`coalesce((service.spec ->> 'min_running_instances')::int, 1) > 0`)
      .where(
        sql<boolean>`not exists (select 1 from deployment_service ds join deployment d on d.id = ds.deployment_id
          where ds.service_id = service.id and (d.status <> 'ENDED' or (d.trigger in ('RESTART', 'ROLLBACK') and d.automatic and d.ended_at > now() - interval '10 minutes')))`,
      )
      .execute();
  }

  async #release(organizationId: string, serviceId: string): Promise<void> {
    await this.#platform.db
      .updateTable('service')
      .set({ restored_at: null })
      .where('organization_id', '=', organizationId)
      .where('id', '=', serviceId)
      .execute();
  }

  /** What ran is asked for again, never what was configured since. */
  async #ask(trigger: 'RESTART' | 'ROLLBACK', serviceId: string, environmentId: string): Promise<void> {
    await inTransaction(systemContext(this.#platform), async (context) => {
      const place = await context.db
        .selectFrom('environment')
        .innerJoin('project', 'project.id', 'environment.project_id')
        .select([
          'environment.id',
          'environment.organization_id',
          'environment.name',
          'environment.project_id',
          'environment.cluster_id',
          'project.name as project_name',
        ])
        .where('environment.id', '=', environmentId)
        .forUpdate('environment')
        .executeTakeFirst();
      if (!place) return;
      this.#platform.log.info({ serviceId }, 'a service that should run is not there any more: it is started again');
      const at = {
        organizationId: place.organization_id,
        projectId: place.project_id,
        projectName: place.project_name,
        environmentId: place.id,
        environmentName: place.name,
        clusterId: place.cluster_id,
        clusterLocked: false,
      };
      if (trigger === 'RESTART') await submit(context, at, trigger, [serviceId], { automatic: true });
      else await requestLastRelease(context, at, serviceId);
    });
  }
}
