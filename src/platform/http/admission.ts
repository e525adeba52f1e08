import { AppError } from '#kernel/errors.ts';
import { Turns } from '#platform/http/turns.ts';

export interface AdmissionLimits {
  /** Requests of one caller at a time, waiting ones included, and as many event streams and web sockets; 0 is no limit. */
  perCaller: number;
  /** Limit of an organization, over all of its callers; 0 is no limit. */
  perOrganization: number;
  /** Writes at a time: each has a connection of the database until its commit. */
  writes: number;
}

/** Kind of what is counted: open connections last for hours and must not keep requests out. */
type Kind = 'requests' | 'connections';

const WORDS: Record<Kind, { have: string; advice: string }> = {
  requests: { have: 'requests under way', advice: 'wait for their answers and ask again in 2 s' },
  connections: { have: 'event streams, followed logs and web sockets open', advice: 'close one and ask again in 2 s' },
};

/** Milliseconds before a refusal is answered: a caller that retries at once would keep the program busy with refusing. */
const REFUSAL_MS = 1_000;
/** Reads of one owner at a time while others ask as well: each takes the process for some milliseconds. */
const READS_BESIDE_OTHERS = 1;
/** Milliseconds after which a read is taken to wait for the database: other reads of its owner go on meanwhile. */
const LONG_READ_MS = 50;
/** Milliseconds after the last request for which a caller is expected to ask again. */
const LATELY_MS = 1_000;

const RETRY = { 'Retry-After': '2' };

/** Counts the requests that each caller and organization has under way in this process, and decides whose is next. */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #inFlight = new Map<string, number>();
  readonly #writes: Turns;
  readonly #reads: Turns;
  readonly #askers = new Askers();

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
    const writes = Math.max(1, limits.writes);
    // Others find a connection at any time.
    const share = Math.max(1, Math.floor(writes / 2));
    const hasOthersThan = (owner: string) => this.#askers.hasOthersThan(owner);
    this.#writes = new Turns({ things: 'changes', limit: writes, shareOf: () => share, hasOthersThan });
    this.#reads = new Turns({
      things: 'reads',
      limit: Infinity,
      shareOf: (owner) => (hasOthersThan(owner) ? READS_BESIDE_OTHERS : Infinity),
      hasOthersThan,
    });
  }

  /** Counts a request, or an open connection. Answers what ends the count; throws 429, after a moment, for one too many. */
  enter(caller: string, organization: string | undefined, kind: Kind = 'requests'): (() => void) | Promise<never> {
    const { perCaller, perOrganization } = this.#limits;
    const counted: [key: string, limit: number, whose: string][] = [
      [`${kind} of caller ${caller}`, perCaller, 'Your token or session'],
    ];
    if (organization) counted.push([`${kind} of organization ${organization}`, perOrganization, 'Your organization']);
    for (const [key, limit, whose] of counted)
      if (limit > 0 && (this.#inFlight.get(key) ?? 0) >= limit) return refuseLater(whose, limit, WORDS[kind]);
    for (const [key] of counted) this.#inFlight.set(key, (this.#inFlight.get(key) ?? 0) + 1);
    return () => {
      for (const [key] of counted) {
        const left = this.#inFlight.get(key)! - 1;
        if (left > 0) this.#inFlight.set(key, left);
        else this.#inFlight.delete(key);
      }
    };
  }

  /**
   * Does a write of an organization when it is its turn. One that waits for what another one has locked would hold a connection meanwhile, of
   * which there are few: so writes of the same subject go one after the other.
   */
  async write<T>(owner: string, subject: string | undefined, work: () => Promise<T>): Promise<T> {
    this.#askers.note(owner);
    // What others write by the same id is not found: it is none of theirs.
    const end = await this.#writes.take(owner, subject && `${owner} ${subject}`);
    try {
      return await work();
    } finally {
      end();
    }
  }

  /** Runs a read of an organization in its turn: at once, unless it has many under way while others ask. */
  async read<T>(owner: string, work: () => Promise<T>): Promise<T> {
    this.#askers.note(owner);
    const end = await this.#reads.take(owner);
    const timer = setTimeout(end, LONG_READ_MS);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
      end();
    }
  }
}

/** Callers that asked lately, as far as it takes to tell whether there is only one. */
class Askers {
  #last = { owner: '', at: -Infinity };
  #before = this.#last;

  note(owner: string): void {
    if (owner !== this.#last.owner) this.#before = this.#last;
    this.#last = { owner, at: performance.now() };
  }

  hasOthersThan(owner: string): boolean {
    const other = this.#last.owner === owner ? this.#before : this.#last;
    return performance.now() - other.at < LATELY_MS;
  }
}

async function refuseLater(whose: string, limit: number, { have, advice }: (typeof WORDS)[Kind]): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, REFUSAL_MS));
  throw new AppError('rate_limited', `${whose} has ${limit} ${have}, the most at a time: ${advice}.`, {
    headers: RETRY,
  });
}
