import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { CANCELLATIONS, DEPLOYMENTS, readWake } from '#deployments/model/channels.ts';
import {
  claimNext,
  clearLeftover,
  DEPLOYMENT_CLAIMS,
  giveBack,
  LEASE_SECONDS,
  renewClaims,
  type Claim,
} from '#deployments/executor/claims.ts';
import type { EngineParts } from '#deployments/executor/engine.ts';
import { lockLiveness, workerName } from '#platform/database/locks.ts';
import { endQuietly } from '#platform/database/notify.ts';
import { WorkLoop, type Renewal, type WorkKind, type WorkReport } from '#platform/work/index.ts';
import { fleetOf, turnOf } from '#platform/work/pace.ts';
import { runDeployment } from '#deployments/executor/run.ts';
import { Slots } from '#deployments/executor/slots.ts';

const POLL_MS = 500;
/** Milliseconds that the worker's own connection may take for an answer: with the pause between renewals well below the time after which a lease is given up. */
const ANSWER_MS = 4_000;

/** Figures of deployments. */
export const DEPLOYMENT_REPORT: WorkReport = { name: 'deployments', status: DEPLOYMENT_CLAIMS.status };

/**
 * Claims deployments and carries them out, several at a time. It shows that it lives by an advisory lock on a connection of its own: when
 * that connection goes, others take its deployments over within a second, and it stops its own work and begins anew under another id.
 */
export class DeploymentWorker {
  readonly #parts: EngineParts;
  readonly #loop: WorkLoop<Claim, 'cancel'>;
  #liveness: pg.Client | undefined;
  #workerId = 0;
  #stopping = false;
  /** Turns at items that other workers were told of first. */
  readonly #turns = new Set<NodeJS.Timeout>();
  readonly #builds: Slots;
  readonly #checkouts: Slots;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.#builds = new Slots(parts.slots.builds);
    // A repository that hangs holds its place for minutes.
    this.#checkouts = new Slots(parts.slots.checkouts, Math.ceil(parts.slots.checkouts / 2));
    this.#loop = new WorkLoop(this.#kind(), parts);
  }

  /** Joins the workers and begins to claim. */
  async start(): Promise<void> {
    await this.#join();
    this.#loop.start();
  }

  /** Hands running deployments over at their next safe point and leaves. Deployed workloads stay up. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const turn of this.#turns) clearTimeout(turn);
    await this.#loop.stop();
    if (this.#liveness) await endQuietly(this.#liveness);
  }

  /** Looks for deployments now. */
  nudge(): void {
    this.#loop.nudge();
  }

  #kind(): WorkKind<Claim, 'cancel'> {
    const { slots, kinds } = this.#parts;
    return {
      name: DEPLOYMENT_REPORT.name,
      leaseSeconds: LEASE_SECONDS,
      slots: slots.deployments,
      pollMs: POLL_MS,
      claim: async (db, { limit, nodeId }) =>
        this.#liveness
          ? claimNext(db, {
              workerId: this.#workerId,
              nodeId,
              organizationSlots: slots.perOrganization,
              kinds: Object.keys(kinds),
              limit,
            })
          : [],
      renew: (_, tokens) => this.#renew(tokens),
      giveBack: async (db, claim, stoppedBy) => {
        await giveBack(db, claim, stoppedBy);
        // Where it was cancelled by force there is nothing to give back, but the environment waits to hear that it has stopped.
        await clearLeftover(db, claim, this.#workerId);
        this.#parts.platform.notify(DEPLOYMENTS);
      },
      run: (claim, lease) =>
        runDeployment(this.#parts, claim, { lease, builds: this.#builds, checkouts: this.#checkouts }),
      subject: ({ deployment }) => deployment.id,
      fields: ({ deployment }) => ({ deploymentId: deployment.id }),
      // A worker without work asks for a sign of life: it would claim, and hear of work, over a connection that is dead.
      heartbeat: async () => void (await this.#ask((client) => client.query('select'))),
      // A worker that was frozen or cut off for too long begins anew under another id.
      onCutOff: () => void this.#liveness?.end(),
    };
  }

  /** Looks for a deployment of which all workers were told, if it is this one's turn. */
  #hear(payload: string): void {
    const wake = readWake(payload);
    if (!wake) return this.#loop.nudge();
    const { workers } = fleetOf(this.#parts.platform.db);
    // Few workers have a machine together, and no other one can claim what lives there.
    const own = wake.nodeId === this.#parts.nodeId ? 0 : undefined;
    const after = wake.nodeId ? own : turnOf(wake.ticket, this.#workerId, workers);
    if (after === undefined || this.#stopping) return;
    if (after === 0) return this.#loop.nudge();
    const turn = setTimeout(() => {
      this.#turns.delete(turn);
      this.#loop.nudge();
    }, after);
    this.#turns.add(turn);
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
      message.channel === CANCELLATIONS ? this.#loop.renew() : this.#hear(message.payload ?? ''),
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
    this.#loop.loseAll();
    while (!this.#stopping && !this.#liveness) {
      try {
        await this.#join();
      } catch (error) {
        this.#parts.platform.log.warn({ err: error }, 'cannot join the workers again yet');
        await sleep(POLL_MS);
      }
    }
  }

  /** Renews over the worker's own connection, which no other query holds up. Without it the leases only age. */
  async #renew(tokens: string[]): Promise<Renewal<'cancel'>[]> {
    const renewals = await this.#ask((client) => renewClaims(client, tokens));
    return renewals ?? tokens.map((token) => ({ token, reason: null, renewed: false }));
  }

  async #ask<Answer>(query: (client: pg.Client) => Promise<Answer>): Promise<Answer | undefined> {
    const client = this.#liveness;
    if (!client) return undefined;
    try {
      return await query(client);
    } catch (error) {
      // Without an answer of the server the connection is of no use any more: its end has the worker begin anew.
      if (!(error instanceof pg.DatabaseError)) void client.end();
      throw error;
    }
  }
}
