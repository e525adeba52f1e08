import { AppError } from '#kernel/errors.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { prepared } from '#platform/database/prepared.ts';

const HOUR = 3600;

interface Window {
  startedAt: number;
  /** Requests counted in the database by all replicas, ours included. */
  counted: number;
  /** Number of requests that this process has counted there ahead and not used yet. */
  ahead: number;
  /** While more are counted. */
  counting?: Promise<void>;
}

export interface RateLimitAnswer {
  headers: Record<string, string>;
}

/**
 * 1000 requests an hour per API token in fixed windows (docs/contributing/rules.md 28). Each process counts ahead in steps of at most 1 % of
 * the limit, so that the count is exact to 1 % per replica, survives restarts, and most requests need no statement.
 */
export class RateLimiter {
  readonly #db: Database;
  readonly #limit: number;
  readonly #step: number;
  readonly #windows = new Map<string, Window>();

  constructor(db: Database, limitPerHour: number) {
    this.#db = db;
    this.#limit = limitPerHour;
    this.#step = Math.max(1, Math.floor(limitPerHour / 200));
  }

  /**
   * Counts one request of a token. Throws 429 with `Retry-After` in seconds when the window is used up. A promise only where the
   * database is asked.
   */
  count(tokenId: string, now: Date): RateLimitAnswer | Promise<RateLimitAnswer> {
    if (this.#limit === 0) return { headers: {} };
    const startedAt = Math.floor(now.getTime() / 1000 / HOUR) * HOUR;
    let window = this.#windows.get(tokenId);
    if (!window || window.startedAt !== startedAt) {
      window = { startedAt, counted: 0, ahead: 0 };
      this.#windows.set(tokenId, window);
    }
    if (window.ahead > 0) return this.#use(window, now);
    return this.#countAndUse(tokenId, window, now);
  }

  /** Counts and uses one request. Requests that arrive while the database is asked wait for the same answer. */
  async #countAndUse(tokenId: string, window: Window, now: Date): Promise<RateLimitAnswer> {
    while (window.ahead === 0) {
      window.counting ??= this.#countAhead(tokenId, window).finally(() => delete window.counting);
      await window.counting;
    }
    return this.#use(window, now);
  }

  #use(window: Window, now: Date): RateLimitAnswer {
    const reset = window.startedAt + HOUR;
    const used = window.counted - window.ahead + 1;
    const headers = {
      'X-RateLimit-Limit': String(this.#limit),
      'X-RateLimit-Remaining': String(Math.max(0, this.#limit - used)),
      'X-RateLimit-Reset': String(reset),
    };
    if (used > this.#limit) {
      const wait = Math.max(1, Math.ceil(reset - now.getTime() / 1000));
      throw new AppError(
        'rate_limited',
        `The limit of ${this.#limit} requests an hour is used up: try again in ${wait} s.`,
        { headers: { ...headers, 'Retry-After': String(wait) } },
      );
    }
    window.ahead--;
    return { headers };
  }

  async #countAhead(tokenId: string, window: Window): Promise<void> {
    const [row] = await countUp(this.#db, tokenId, new Date(window.startedAt * 1000), this.#step);
    // A token that is gone has no window; its caller is refused a moment later.
    window.counted = row?.used ?? this.#step;
    window.ahead = this.#step;
  }
}

const countUp = prepared((db, tokenId: string, startedAt: Date, step: number) =>
  db
    .insertInto('rate_window')
    .columns(['token_id', 'started_at', 'used'])
    .expression((from) =>
      from
        .selectFrom('api_token')
        .select(['id', sql<Date>`${startedAt}::timestamptz`.as('started_at'), sql<number>`${step}::integer`.as('used')])
        .where('id', '=', tokenId),
    )
    .onConflict((conflict) =>
      conflict
        .columns(['token_id', 'started_at'])
        .doUpdateSet({ used: sql`least(rate_window.used + excluded.used, 2000000000)` }),
    )
    .returning('used'),
);

/** Removes windows in which nothing is counted any more. */
export const removeOldWindows = (db: Database) =>
  db
    .deleteFrom('rate_window')
    .where('started_at', '<', sql<Date>`now() - interval '2 hours'`)
    .execute();
