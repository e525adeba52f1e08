import { attempt, claimDue, RETRY_SCHEDULE_MS, type Claim } from '#delivery/webhooks/attempt.ts';
import { fanOut } from '#delivery/webhooks/fan-out.ts';
import type { Breaker, Busy } from '#delivery/webhooks/queries.ts';
import type { Platform } from '#platform/context.ts';
import type { HttpClient } from '#platform/http-client/index.ts';

export { WEBHOOK_REPORT } from '#delivery/webhooks/queries.ts';
export { expireDeliveries, removeOldDeliveries } from '#delivery/webhooks/retention.ts';

export interface WebhookDelivery {
  start(): void;
  /** Stops claiming; deliveries under way have `grace` to end, then they are given back. */
  stop(): Promise<void>;
  /** Tells of possible work: call it on a message of `OUTBOX_CHANNEL`. */
  nudge(): void;
}

export interface WebhookDeliveryOptions {
  platform: Platform;
  http: HttpClient;
  /** Times in ms, set by tests. */
  times?: Partial<Times>;
}

interface Times {
  /** Milliseconds that the receiver has to answer. */
  timeout: number;
  /** Milliseconds after which another process takes over a claim; longer than an attempt can last. */
  lease: number;
  /** Milliseconds between looks without a nudge. */
  poll: number;
  /** Milliseconds for deliveries under way at a stop. */
  grace: number;
  schedule: readonly number[];
  breaker: Breaker;
}

const TIMES: Times = {
  timeout: 10_000,
  lease: 15_000,
  poll: 1_000,
  grace: 2_000,
  schedule: RETRY_SCHEDULE_MS,
  breaker: { failures: 10, pauseMs: 5_000, longestPauseMs: 300_000 },
};

/** Calls under way in this process; of one organization and one webhook about so many, so that slow receivers hold up few. */
const SLOTS = 64;
const ORGANIZATION_SLOTS = 32;
const WEBHOOK_SLOTS = 8;
const CLAIM_AT_ONCE = 8;

/**
 * Calls webhooks: turns the outbox into deliveries and makes their attempts, at least once each, under an id that stays.
 * Any number of processes share the work.
 */
export function createWebhookDelivery({ platform, http, times }: WebhookDeliveryOptions): WebhookDelivery {
  return new Worker(platform, http, { ...TIMES, ...times });
}

class Worker implements WebhookDelivery {
  readonly #platform: Platform;
  readonly #http: HttpClient;
  readonly #times: Times;
  readonly #underWay = new Map<Claim, Promise<void>>();
  readonly #abort = new AbortController();
  #stopping = false;
  #running: Promise<void> | undefined;
  #nudged = false;
  #wake: (() => void) | undefined;

  constructor(platform: Platform, http: HttpClient, times: Times) {
    this.#platform = platform;
    this.#http = http;
    this.#times = times;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  nudge(): void {
    this.#nudged = true;
    this.#wake?.();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.nudge();
    await this.#running;
    const timer = setTimeout(() => this.#abort.abort(), this.#times.grace);
    await Promise.all(this.#underWay.values());
    clearTimeout(timer);
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      this.#nudged = false;
      try {
        const taken = await fanOut(this.#platform);
        const claimed = await this.#claim();
        if (taken + claimed > 0) continue;
      } catch (error) {
        this.#platform.log.error({ err: error }, 'webhooks could not be delivered; trying again');
        this.#nudged = false; // A database that is away isn't asked in a busy loop.
      }
      await this.#pause();
    }
  }

  /** Claims as much as there is room for and starts it; answers how much that was. */
  async #claim(): Promise<number> {
    const limit = Math.min(CLAIM_AT_ONCE, SLOTS - this.#underWay.size);
    if (limit <= 0) return 0;
    const claims = await claimDue(this.#platform, {
      limit,
      leaseMs: this.#times.lease,
      busy: this.#busy(),
      breaker: this.#times.breaker,
    });
    for (const claim of claims) this.#underWay.set(claim, this.#attempt(claim));
    return claims.length;
  }

  async #attempt(claim: Claim): Promise<void> {
    try {
      await attempt(this.#platform, this.#http, claim, {
        timeoutMs: this.#times.timeout,
        scheduleMs: this.#times.schedule,
        breaker: this.#times.breaker,
        signal: this.#abort.signal,
      });
    } catch (error) {
      // Its lease runs out, and another worker repeats the call.
      this.#platform.log.error({ err: error, delivery: claim.id }, 'the attempt of a webhook could not be recorded');
    } finally {
      this.#underWay.delete(claim);
      this.nudge();
    }
  }

  #busy(): Busy {
    const counts = new Map<string, number>();
    for (const { webhook_id: webhook, organization_id: organization } of this.#underWay.keys())
      for (const id of [webhook, organization]) counts.set(id, (counts.get(id) ?? 0) + 1);
    const claims = [...this.#underWay.keys()];
    const full = (ids: string[], slots: number) => [...new Set(ids)].filter((id) => counts.get(id)! >= slots);
    return {
      webhookIds: full(
        claims.map((claim) => claim.webhook_id),
        WEBHOOK_SLOTS,
      ),
      organizationIds: full(
        claims.map((claim) => claim.organization_id),
        ORGANIZATION_SLOTS,
      ),
    };
  }

  /** Waits until the next look, or a nudge. */
  async #pause(): Promise<void> {
    if (this.#nudged) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#times.poll);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}
