import { AppError } from '#kernel/errors.ts';

export interface AdmissionLimits {
  /** Requests of one caller at a time, those included that wait, and as many event streams and web sockets; 0 is no limit. */
  perCaller: number;
  /** The same of an organization, over all of its callers. */
  perOrganization: number;
  /** Writes at a time: each has a connection of the database until its commit. */
  writes: number;
}

/** What is counted: open connections last for hours, and must not keep requests out. */
type Kind = 'requests' | 'connections';

const WORDS: Record<Kind, { have: string; advice: string }> = {
  requests: { have: 'requests under way', advice: 'wait for their answers and ask again in 2 s' },
  connections: { have: 'event streams and web sockets open', advice: 'close one and ask again in 2 s' },
};

/** A refusal is answered after so long: a caller that asks again at once would else keep the program busy with refusing. */
const REFUSAL_MS = 1_000;
/** Writes of one organization that wait for their turn. */
const MAX_WAITING = 500;
/** After so long without its turn a write is given up, as one that waits for a lock of the database is. */
const TURN_MS = 15_000;

const RETRY = { 'Retry-After': '2' };

/** How many requests each caller and organization has under way in this process, and whose write is next. */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #inFlight = new Map<string, number>();
  readonly #writes: WriteTurns;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
    this.#writes = new WriteTurns(limits.writes);
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

  /** Does a write of an organization when it is its turn. Writes of the same subject go one after the other. */
  write<T>(owner: string, subject: string | undefined, work: () => Promise<T>): Promise<T> {
    // What others write by the same id is not found: it is none of theirs.
    return this.#writes.run(owner, subject && `${owner} ${subject}`, work);
  }
}

async function refuseLater(whose: string, limit: number, { have, advice }: (typeof WORDS)[Kind]): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, REFUSAL_MS));
  throw new AppError('rate_limited', `${whose} has ${limit} ${have}, the most at a time: ${advice}.`, {
    headers: RETRY,
  });
}

interface Turn {
  subject: string | undefined;
  begin(): void;
}

/**
 * Turns of writes. A write that waits for what another one has locked would hold a connection meanwhile, of which there are few: so those of
 * one subject wait here for each other, and owners take turns.
 */
class WriteTurns {
  readonly #limit: number;
  /** Writes of one owner at a time: others find a connection at any time. */
  readonly #share: number;
  readonly #waiting = new Map<string, Turn[]>();
  readonly #subjects = new Set<string>();
  readonly #running = new Map<string, number>();
  #count = 0;

  constructor(limit: number) {
    this.#limit = Math.max(1, limit);
    this.#share = Math.max(1, Math.floor(this.#limit / 2));
  }

  async run<T>(owner: string, subject: string | undefined, work: () => Promise<T>): Promise<T> {
    await this.#turn(owner, subject);
    try {
      return await work();
    } finally {
      this.#end(owner, subject);
    }
  }

  #turn(owner: string, subject: string | undefined): Promise<void> | void {
    if (this.#isFree(owner, subject)) return this.#begin(owner, subject);
    const turns = this.#waiting.get(owner) ?? [];
    if (turns.length >= MAX_WAITING)
      throw new AppError(
        'unavailable',
        `${MAX_WAITING} changes of your organization wait for their turn. Nothing was done: ask again in 2 s.`,
        { headers: RETRY },
      );
    this.#waiting.set(owner, turns);
    return new Promise((resolve, reject) => {
      const turn: Turn = {
        subject,
        begin: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        turns.splice(turns.indexOf(turn), 1);
        if (turns.length === 0 && this.#waiting.get(owner) === turns) this.#waiting.delete(owner);
        reject(
          new AppError(
            'unavailable',
            `Other changes of the same kept this one waiting for ${TURN_MS / 1000} s. Nothing was done: ask again in a few seconds.`,
            { headers: RETRY },
          ),
        );
      }, TURN_MS);
      turns.push(turn);
    });
  }

  #isFree(owner: string, subject: string | undefined): boolean {
    return (
      this.#count < this.#limit &&
      (this.#running.get(owner) ?? 0) < this.#share &&
      (subject === undefined || !this.#subjects.has(subject))
    );
  }

  #begin(owner: string, subject: string | undefined): void {
    this.#count++;
    this.#running.set(owner, (this.#running.get(owner) ?? 0) + 1);
    if (subject !== undefined) this.#subjects.add(subject);
  }

  #end(owner: string, subject: string | undefined): void {
    this.#count--;
    const left = this.#running.get(owner)! - 1;
    if (left > 0) this.#running.set(owner, left);
    else this.#running.delete(owner);
    if (subject !== undefined) this.#subjects.delete(subject);
    this.#next();
  }

  /** Begins what can begin: of each owner in turn the first write whose subject is free. */
  #next(): void {
    for (const [owner, turns] of this.#waiting) {
      if (this.#count >= this.#limit) return;
      const at = turns.findIndex(({ subject }) => this.#isFree(owner, subject));
      if (at < 0) continue;
      const [turn] = turns.splice(at, 1);
      // Behind all others, if it has more.
      this.#waiting.delete(owner);
      if (turns.length > 0) this.#waiting.set(owner, turns);
      this.#begin(owner, turn!.subject);
      turn!.begin();
    }
  }
}
