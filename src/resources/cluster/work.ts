import { anySignal } from '#kernel/lease-signal.ts';
import type { ClientConfig } from 'pg';
import { inTransaction, systemContext } from '#platform/context.ts';
import { createListener, type Listener } from '#platform/database/notify.ts';
import { Poll } from '#platform/jobs/pace.ts';
import { CLUSTER_WORK } from '#resources/cluster/channels.ts';
import { endExpiredLocks } from '#resources/cluster/lock.ts';
import { setState } from '#resources/cluster/queries.ts';
import { COURSES } from '#resources/cluster/states.ts';
import { ClaimLost, claimWork, giveWorkBack, renewWork, type Claim } from '#resources/cluster/work-claims.ts';
import { runWork, type WorkParts } from '#resources/cluster/work-run.ts';

export type { ClusterReport, ClusterToCheck } from '#resources/cluster/work-run.ts';

export interface ClusterWorkerOptions extends Omit<WorkParts, 'checkTimeoutMs'> {
  /** This machine: clusters that live on another are left to its own workers. */
  nodeId: string;
  /** A direct connection to listen on, so that work begins at once; without it the poll finds it. */
  directConfig?: ClientConfig;
  /** Seconds that a claim holds without being renewed: so long after a kill -9 another worker takes the work over. */
  leaseSeconds?: number;
  pollMs?: number;
  checkTimeoutMs?: number;
  /** Clusters that one worker works on at a time. */
  slots?: number;
}

export interface ClusterWorker {
  start(): void;
  /** Gives back what it works on and leaves. */
  stop(): Promise<void>;
}

/** Carries out the work on clusters and ends locks whose time is over (engine.md, *Clusters*). */
export const createClusterWorker = (options: ClusterWorkerOptions): ClusterWorker => new Worker(options);

class Worker implements ClusterWorker {
  readonly #options: Required<Omit<ClusterWorkerOptions, 'directConfig'>>;
  readonly #directConfig: ClientConfig | undefined;
  readonly #abort = new AbortController();
  readonly #running = new Set<Promise<void>>();
  #listener: Listener | undefined;
  readonly #poll: Poll;
  #looking: Promise<void> | undefined;
  #again = false;

  constructor({ directConfig, ...options }: ClusterWorkerOptions) {
    this.#directConfig = directConfig;
    this.#options = { leaseSeconds: 15, pollMs: 1000, checkTimeoutMs: 60_000, slots: 4, ...options };
    this.#poll = new Poll(options.platform.db, this.#options.pollMs, () => this.#nudge());
  }

  start(): void {
    const { log } = this.#options.platform;
    this.#poll.start();
    if (this.#directConfig)
      this.#listener = createListener(
        this.#directConfig,
        [CLUSTER_WORK],
        () => this.#nudge(),
        (error) => log.warn({ err: error }, 'cannot listen for work on clusters'),
      );
    this.#nudge();
  }

  async stop(): Promise<void> {
    this.#poll.stop();
    this.#abort.abort();
    await this.#listener?.close();
    await this.#looking;
    await Promise.all(this.#running);
  }

  #nudge(): void {
    if (this.#looking) this.#again = true;
    else this.#looking = this.#look().finally(() => (this.#looking = undefined));
  }

  async #look(): Promise<void> {
    const { platform, slots } = this.#options;
    do {
      this.#again = false;
      try {
        await inTransaction(systemContext(platform), endExpiredLocks);
        while (!this.#abort.signal.aborted && this.#running.size < slots) {
          const claim = await this.#claim();
          if (!claim) break;
          this.#begin(claim);
        }
      } catch (error) {
        platform.log.warn({ err: error }, 'cannot look for work on clusters');
      }
    } while (this.#again && !this.#abort.signal.aborted);
  }

  #claim(): Promise<Claim | undefined> {
    const { platform, nodeId, leaseSeconds } = this.#options;
    return platform.db.transaction().execute(async (db) => {
      const claim = await claimWork(db, nodeId, leaseSeconds);
      if (claim)
        await setState(db, { organizationId: claim.organization_id }, claim.cluster_id, COURSES[claim.action].running);
      return claim;
    });
  }

  #begin(claim: Claim): void {
    const running = this.#carryOut(claim).finally(() => {
      this.#running.delete(running);
      if (!this.#abort.signal.aborted) this.#nudge();
    });
    this.#running.add(running);
  }

  async #carryOut(claim: Claim): Promise<void> {
    const { platform, leaseSeconds } = this.#options;
    const log = platform.log.child({ clusterId: claim.cluster_id, workId: claim.id });
    const lost = new AbortController();
    const renewal = setInterval(
      () =>
        void renewWork(platform.db, claim, leaseSeconds).then(
          (held) => held || lost.abort(),
          (error: unknown) => log.warn({ err: error }, 'cannot renew the claim on the work of a cluster'),
        ),
      (leaseSeconds * 1000) / 3,
    );
    try {
      await runWork(this.#options, claim, anySignal([lost.signal, this.#abort.signal]));
    } catch (error) {
      if (this.#abort.signal.aborted) await this.#giveBack(claim, log);
      else if (!(error instanceof ClaimLost))
        log.warn({ err: error }, 'stopped working on a cluster; another attempt goes on with it');
    } finally {
      clearInterval(renewal);
    }
  }

  async #giveBack(claim: Claim, log: ClusterWorkerOptions['platform']['log']): Promise<void> {
    try {
      await giveWorkBack(this.#options.platform.db, claim);
    } catch (error) {
      log.warn({ err: error }, 'cannot give the work on a cluster back; its lease ends by itself');
    }
  }
}
