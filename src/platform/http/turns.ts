import { AppError } from '#kernel/errors.ts';

/** Number of an owner's items that may wait. */
const MAX_WAITING = 500;
/** An owner with so many that wait rests between its turns while others ask: as long as the turn took, within a limit. */
const MANY_WAITING = 20;
const LONGEST_REST_MS = 50;
/** Milliseconds without a turn after which an item is given up; waits for locks of the database end likewise. */
const TURN_MS = 15_000;

const RETRY = { 'Retry-After': '2' };

interface Turn {
  subject: string | undefined;
  begin(): void;
}

export interface TurnRules {
  /** Plural of the items in messages: `changes`. */
  things: string;
  /** Owner in messages; `your organization` without. */
  owner?: string;
  /** Number of items that go on at a time. */
  limit: number;
  /** Returns the number of items of one owner that go on at a time. */
  shareOf(owner: string): number;
  /** Returns whether others than the owner ask for turns as well. */
  hasOthersThan(owner: string): boolean;
}

/** Turns of work: of one subject one after the other, of each owner no more than their share, owners one after the other. */
export class Turns {
  readonly #rules: TurnRules;
  readonly #waiting = new Map<string, Turn[]>();
  readonly #subjects = new Set<string>();
  readonly #running = new Map<string, number>();
  #count = 0;

  constructor(rules: TurnRules) {
    this.#rules = rules;
  }

  /**
   * Begins when it is the owner's turn, and answers what ends it, once. Throws 503 when too many of the owner wait, or after 15 s without a turn.
   */
  async take(owner: string, subject?: string): Promise<() => void> {
    await this.#turn(owner, subject);
    const began = performance.now();
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#count--;
      this.#rest(owner, performance.now() - began, () => this.#end(owner, subject));
    };
  }

  /** Keeps an owner at its limits from filling the process with one turn after the other: half of its time is left to others. */
  #rest(owner: string, tookMs: number, end: () => void): void {
    const waiting = this.#waiting.get(owner)?.length ?? 0;
    if (waiting < MANY_WAITING || !this.#rules.hasOthersThan(owner)) return end();
    setTimeout(end, Math.min(tookMs, LONGEST_REST_MS));
    this.#next();
  }

  #turn(owner: string, subject: string | undefined): Promise<void> | void {
    if (this.#isFree(owner, subject)) return this.#begin(owner, subject);
    const turns = this.#waiting.get(owner) ?? [];
    if (turns.length >= MAX_WAITING)
      throw new AppError(
        'unavailable',
        `${MAX_WAITING} ${this.#rules.things} of ${this.#rules.owner ?? 'your organization'} wait for their turn. Nothing was done: ask again in 2 s.`,
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
            `Other ${this.#rules.things} of yours kept this one waiting for ${TURN_MS / 1000} s. Nothing was done: ask again in a few seconds.`,
            { headers: RETRY },
          ),
        );
      }, TURN_MS);
      turns.push(turn);
    });
  }

  #isFree(owner: string, subject: string | undefined): boolean {
    return (
      this.#count < this.#rules.limit &&
      (this.#running.get(owner) ?? 0) < this.#rules.shareOf(owner) &&
      (subject === undefined || !this.#subjects.has(subject))
    );
  }

  #begin(owner: string, subject: string | undefined): void {
    this.#count++;
    this.#running.set(owner, (this.#running.get(owner) ?? 0) + 1);
    if (subject !== undefined) this.#subjects.add(subject);
  }

  #end(owner: string, subject: string | undefined): void {
    const left = this.#running.get(owner)! - 1;
    if (left > 0) this.#running.set(owner, left);
    else this.#running.delete(owner);
    if (subject !== undefined) this.#subjects.delete(subject);
    this.#next();
  }

  /** Begins what can begin: of each owner in turn the first one whose subject is free. */
  #next(): void {
    for (const [owner, turns] of this.#waiting) {
      if (this.#count >= this.#rules.limit) return;
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
