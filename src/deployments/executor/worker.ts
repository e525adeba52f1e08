import pg from 'pg';
import { CANCELLATIONS, DEPLOYMENTS } from '#deployments/model/channels.ts';
import { claimNext, giveBack, LIVENESS_CLASS, renewClaims, type Claim } from '#deployments/executor/claims.ts';
import type { EngineParts } from '#deployments/executor/engine.ts';
import { runDeployment, type StopReason } from '#deployments/executor/run.ts';

const POLL_MS = 500;
const RENEW_MS = 3_000;
/** A worker that could not renew for this long stops its own work, before the lease ends. */
const GIVE_UP_MS = 10_000;

interface Running {
  claim: Claim;
  abort: AbortController;
  done: Promise<void>;
}

/**
 * Claims deployments and carries them out, several at a time. It shows that it lives by an advisory lock on a connection of its own: when
 * that connection goes, others take its deployments over within a second, and it stops its own work and begins anew under another id
 * (engine.md, *The queue*).
 */
export class DeploymentWorker {
  readonly #parts: EngineParts;
  readonly #running = new Map<string, Running>();
  #liveness: pg.Client | undefined;
  #workerId = 0;
  #stopping = false;
  #timers: NodeJS.Timeout[] = [];
  #filling: Promise<void> | undefined;
  #again = false;
  #lastRenewal = Date.now();
  #builds = 0;
  readonly #buildQueue: (() => void)[] = [];

  constructor(parts: EngineParts) {
    this.#parts = parts;
  }

  /** Joins the workers and begins to claim. */
  async start(): Promise<void> {
    await this.#join();
    this.#timers = [setInterval(() => this.nudge(), POLL_MS), setInterval(() => void this.#renew(), RENEW_MS)];
    this.nudge();
  }

  /** Hands running deployments over at their next safe point and leaves. Deployed workloads stay up. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const timer of this.#timers) clearInterval(timer);
    await this.#filling;
    for (const running of this.#running.values()) running.abort.abort('give-back' satisfies StopReason);
    await Promise.all([...this.#running.values()].map((running) => running.done));
    await this.#liveness?.end();
  }

  /** Looks for work now; called on notifications and by the poll. */
  nudge(): void {
    if (this.#filling) this.#again = true;
    else this.#filling = this.#fill().finally(() => (this.#filling = undefined));
  }

  async #join(): Promise<void> {
    const client = new pg.Client({
      ...this.#parts.directConfig,
      application_name: 'quarterdeck worker',
      keepAlive: true,
    });
    client.on('error', () => undefined); // `end` follows and is what we act on.
    client.on('end', () => void this.#rejoin(client));
    client.on('notification', (message) => (message.channel === CANCELLATIONS ? void this.#renew() : this.nudge()));
    await client.connect();
    const { rows } = await client.query<{ id: string }>(`select nextval('worker_number') as id`);
    this.#workerId = Number(rows[0]!.id);
    await client.query('select pg_advisory_lock($1, $2)', [LIVENESS_CLASS, this.#workerId]);
    await client.query(`listen ${DEPLOYMENTS}; listen ${CANCELLATIONS}`);
    this.#liveness = client;
    this.#lastRenewal = Date.now();
  }

  async #rejoin(client: pg.Client): Promise<void> {
    if (this.#stopping || client !== this.#liveness) return;
    this.#liveness = undefined;
    this.#parts.platform.log.warn(
      'the connection that shows that this worker lives is gone: its deployments are left to others',
    );
    this.#abortAll('lost');
    while (!this.#stopping && !this.#liveness) {
      try {
        await this.#join();
      } catch (error) {
        this.#parts.platform.log.warn({ err: error }, 'cannot join the workers again yet');
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    }
  }

  #abortAll(reason: StopReason): void {
    for (const running of this.#running.values()) running.abort.abort(reason);
  }

  async #fill(): Promise<void> {
    do {
      this.#again = false;
      while (!this.#stopping && this.#liveness && this.#running.size < this.#parts.slots.deployments) {
        const claim = await this.#claim();
        if (!claim) break;
        this.#begin(claim);
      }
    } while (this.#again && !this.#stopping);
  }

  async #claim(): Promise<Claim | undefined> {
    try {
      return await claimNext(this.#parts.platform.db, {
        workerId: this.#workerId,
        nodeId: this.#parts.nodeId,
        organizationSlots: this.#parts.slots.perOrganization,
      });
    } catch (error) {
      // Two workers chose heads of one environment at once: the index lets one through, the poll finds the next.
      if ((error as { code?: string }).code !== '23505')
        this.#parts.platform.log.warn({ err: error }, 'cannot claim a deployment');
      return undefined;
    }
  }

  #begin(claim: Claim): void {
    const abort = new AbortController();
    const running: Running = { claim, abort, done: Promise.resolve() };
    this.#running.set(claim.token, running);
    running.done = this.#carryOut(claim, abort).finally(() => {
      this.#running.delete(claim.token);
      if (!this.#stopping) this.nudge();
    });
  }

  async #carryOut(claim: Claim, abort: AbortController): Promise<void> {
    const log = this.#parts.platform.log.child({ deploymentId: claim.deployment.id });
    try {
      await runDeployment(this.#parts, claim, { signal: abort.signal, buildSlot: (work) => this.#withBuildSlot(work) });
    } catch (error) {
      if (abort.signal.reason === 'give-back') await giveBack(this.#parts.platform.db, claim);
      else log.warn({ err: error }, 'stopped working on a deployment; another attempt goes on with it');
    }
  }

  /** Renews the leases, and learns what is to be cancelled and what is no longer ours. */
  async #renew(): Promise<void> {
    if (this.#running.size === 0) {
      this.#lastRenewal = Date.now();
      return;
    }
    try {
      const held = await renewClaims(this.#parts.platform.db, [...this.#running.keys()]);
      this.#lastRenewal = Date.now();
      for (const [token, running] of this.#running) {
        const state = held.get(token);
        if (state?.cancel) running.abort.abort('cancel' satisfies StopReason);
      }
    } catch (error) {
      this.#parts.platform.log.warn({ err: error }, 'cannot renew the leases');
      if (Date.now() - this.#lastRenewal > GIVE_UP_MS) this.#abortAll('lost');
    }
  }

  async #withBuildSlot<T>(work: () => Promise<T>): Promise<T> {
    if (this.#builds >= this.#parts.slots.builds) await new Promise<void>((resolve) => this.#buildQueue.push(resolve));
    this.#builds++;
    try {
      return await work();
    } finally {
      this.#builds--;
      this.#buildQueue.shift()?.();
    }
  }
}
