import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { CANCELLATIONS, DEPLOYMENTS, readWake } from '#deployments/model/channels.ts';
import {
  claimNext,
  clearLeftover,
  DatabaseAway,
  giveBack,
  LEASE_SECONDS,
  renewClaims,
  type Claim,
} from '#deployments/executor/claims.ts';
import type { EngineParts } from '#deployments/executor/engine.ts';
import { lockLiveness, workerName } from '#platform/database/locks.ts';
import { endQuietly } from '#platform/database/notify.ts';
import { fleetOf, Poll, turnOf } from '#platform/work/pace.ts';
import { LeasedWork } from '#platform/work/leased-work.ts';
import { runDeployment } from '#deployments/executor/run.ts';
import { Slots } from '#deployments/executor/slots.ts';
import type { Lease } from '#platform/work/index.ts';

const POLL_MS = 500;
const RENEW_MS = 3_000;
const WATCH_MS = 250;
const SOON_MS = 5;
/** Milliseconds that the worker's own connection may take for an answer: with RENEW_MS well below the time after which a lease is given up. */
const ANSWER_MS = 4_000;

/**
 * Claims deployments and carries them out, several at a time. It shows that it lives by an advisory lock on a connection of its own: when
 * that connection goes, others take its deployments over within a second, and it stops its own work and begins anew under another id
 * (engine.md, *The queue*).
 */
export class DeploymentWorker {
  readonly #parts: EngineParts;
  readonly #work = new LeasedWork<'cancel'>(LEASE_SECONDS);
  #liveness: pg.Client | undefined;
  #workerId = 0;
  #stopping = false;
  #timers: NodeJS.Timeout[] = [];
  readonly #poll: Poll;
  /** Turns at items that other workers were told of first. */
  readonly #turns = new Set<NodeJS.Timeout>();
  #filling: Promise<void> | undefined;
  #again = false;
  #renewing: Promise<void> | undefined;
  #renewAgain = false;
  #soon: NodeJS.Timeout | undefined;
  readonly #builds: Slots;
  /** Attempts of this worker that have not ended, by deployment: the next one at the same deployment waits for them. */
  readonly #attempts = new Map<string, Promise<void>>();

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.#builds = new Slots(parts.slots.builds);
    this.#poll = new Poll(parts.platform.db, POLL_MS, () => this.nudge());
  }

  /** Joins the workers and begins to claim. */
  async start(): Promise<void> {
    await this.#join();
    this.#timers = [setInterval(() => this.#renew(), RENEW_MS), setInterval(() => this.#watchLease(), WATCH_MS)];
    this.#poll.start();
    this.nudge();
  }

  /**
   * Hands running deployments over at their next safe point and leaves. Deployed workloads stay up. Leases are renewed until the last attempt has
   * ended: nobody may take over what is still under way.
   */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#soon);
    this.#poll.stop();
    for (const turn of this.#turns) clearTimeout(turn);
    // What runs hears of it at once; what is being claimed just now, when that has come to its end.
    this.#work.abortAll('give-back');
    await Promise.all([this.#work.ended(), this.#filling]);
    this.#work.abortAll('give-back');
    await this.#work.ended();
    for (const timer of this.#timers) clearInterval(timer);
    if (this.#liveness) await endQuietly(this.#liveness);
  }

  /** Looks for a deployment of which all workers were told, if it is this one's turn. */
  #hear(payload: string): void {
    const wake = readWake(payload);
    if (!wake) return this.nudge();
    const { workers } = fleetOf(this.#parts.platform.db);
    // Few workers have a machine together, and no other one can claim what lives there.
    const own = wake.nodeId === this.#parts.nodeId ? 0 : undefined;
    const after = wake.nodeId ? own : turnOf(wake.ticket, this.#workerId, workers);
    if (after === undefined || this.#stopping) return;
    if (after === 0) return this.nudge();
    const turn = setTimeout(() => {
      this.#turns.delete(turn);
      this.nudge();
    }, after);
    this.#turns.add(turn);
  }

  /** Looks for work now; called on notifications and by the poll. */
  nudge(): void {
    if (this.#filling) this.#again = true;
    else this.#filling = this.#fill().finally(() => (this.#filling = undefined));
  }

  /** Several that end at about the same time are followed by one look: it costs by the length of the queue (1 ms for 300 that wait). */
  #nudgeSoon(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      if (!this.#stopping) this.nudge();
    }, SOON_MS);
  }

  async #join(): Promise<void> {
    const client = new pg.Client({
      ...this.#parts.directConfig,
      application_name: workerName(this.#parts.nodeId, this.#parts.slots.deployments),
      keepAlive: true,
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
    });
    client.on('error', () => undefined); // `end` follows and is what we act on.
    client.on('end', () => void this.#rejoin(client));
    client.on('notification', (message) =>
      message.channel === CANCELLATIONS ? this.#renew() : this.#hear(message.payload ?? ''),
    );
    try {
      await client.connect();
      const { rows } = await client.query<{ id: string }>(`select nextval('worker_number') as id`);
      await lockLiveness(client, Number(rows[0]!.id));
      await client.query(`listen ${DEPLOYMENTS}; listen ${CANCELLATIONS}`);
      this.#workerId = Number(rows[0]!.id);
    } catch (error) {
      await client.end().catch(() => undefined); // It is broken already: nothing is left to be ended.
      throw error;
    }
    this.#liveness = client;
  }

  async #rejoin(client: pg.Client): Promise<void> {
    if (this.#stopping || client !== this.#liveness) return;
    this.#liveness = undefined;
    this.#parts.platform.log.warn(
      'the connection that shows that this worker lives is gone: its deployments are left to others',
    );
    this.#work.abortAll('lost');
    while (!this.#stopping && !this.#liveness) {
      try {
        await this.#join();
      } catch (error) {
        this.#parts.platform.log.warn({ err: error }, 'cannot join the workers again yet');
        await sleep(POLL_MS);
      }
    }
  }

  async #fill(): Promise<void> {
    do {
      this.#again = false;
      for (;;) {
        const free = this.#parts.slots.deployments - this.#work.size;
        if (this.#stopping || !this.#liveness || free <= 0) break;
        const claims = await this.#claim(free);
        for (const claim of claims) this.#begin(claim);
        if (claims.length < free) break;
      }
    } while (this.#again && !this.#stopping);
  }

  async #claim(limit: number): Promise<Claim[]> {
    try {
      this.#work.refresh();
      return await claimNext(this.#parts.platform.db, {
        workerId: this.#workerId,
        nodeId: this.#parts.nodeId,
        organizationSlots: this.#parts.slots.perOrganization,
        kinds: Object.keys(this.#parts.kinds),
        limit,
      });
    } catch (error) {
      this.#parts.platform.log.warn({ err: error }, 'cannot claim deployments');
      return [];
    }
  }

  #begin(claim: Claim): void {
    void this.#work.begin(claim.token, (lease) => this.#carryOutAlone(claim, lease)).finally(() => this.#nudgeSoon());
  }

  /** An attempt of this worker that was lost may still be ending: two of one process would be at the same deployment. */
  async #carryOutAlone(claim: Claim, lease: Lease<'cancel'>): Promise<void> {
    const { id } = claim.deployment;
    const before = this.#attempts.get(id);
    const attempt = (before ?? Promise.resolve()).then(() => this.#carryOut(claim, lease));
    this.#attempts.set(id, attempt);
    try {
      await attempt;
    } finally {
      if (this.#attempts.get(id) === attempt) this.#attempts.delete(id);
    }
  }

  async #carryOut(claim: Claim, lease: Lease<'cancel'>): Promise<void> {
    try {
      await runDeployment(this.#parts, claim, { lease, builds: this.#builds });
    } catch (error) {
      await this.#leave(claim, lease.reason === 'give-back', error);
    }
  }

  /** Lets go of what was not brought to its end: all that was under way for it has stopped by now. */
  async #leave(claim: Claim, inOrder: boolean, error: unknown): Promise<void> {
    const { db, log, notify } = this.#parts.platform;
    if (!inOrder)
      log.warn(
        { err: error, deploymentId: claim.deployment.id },
        'stopped working on a deployment; another attempt goes on with it',
      );
    // Pickups are counted against work that ends its worker, not against a database that is away; that gets time to come back.
    const away = error instanceof DatabaseAway;
    if (away && !this.#stopping) await sleep(POLL_MS);
    try {
      await giveBack(db, claim, inOrder || away ? 'order' : 'failure');
      // Where it was cancelled by force there is nothing to give back, but somebody waits to hear that it has stopped.
      if (!inOrder) await clearLeftover(db, claim, this.#workerId);
      notify(DEPLOYMENTS);
    } catch (cause) {
      log.warn(
        { err: cause, deploymentId: claim.deployment.id },
        'cannot give a deployment back: others take it over when its lease ends',
      );
    }
  }

  /** A worker that was stopped or cut off for too long leaves its work to others, and begins anew under another id. */
  #watchLease(): void {
    if (this.#liveness && this.#work.watch()) void this.#liveness.end();
  }

  /** Renews the leases, and learns what is to be cancelled and what is no longer ours. What is told during a renewal is asked for after it. */
  #renew(): void {
    if (this.#renewing) this.#renewAgain = true;
    else this.#renewing = this.#renewAll().finally(() => (this.#renewing = undefined));
  }

  async #renewAll(): Promise<void> {
    do {
      this.#renewAgain = false;
      await this.#renewOnce();
    } while (this.#renewAgain);
  }

  async #renewOnce(): Promise<void> {
    const client = this.#liveness;
    if (!client) return;
    try {
      // A worker without work asks for a sign of life: it would claim, and hear of work, over a connection that is dead.
      if (this.#work.size === 0) await client.query('select');
      else await this.#work.renew((tokens) => renewClaims(client, tokens));
    } catch (error) {
      this.#parts.platform.log.warn({ err: error }, 'cannot renew the leases');
      // Without an answer of the server the connection is of no use any more: its end has the worker begin anew.
      if (!(error instanceof pg.DatabaseError)) void client.end();
    }
  }
}
