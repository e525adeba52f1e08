import { sql, type Database } from '#platform/database/index.ts';
import { LIVE_WORKERS } from '#platform/database/locks.ts';

/** Looks a second of all workers together, and the longest pause of each. */
const LOOKS_PER_SECOND = 4;
const LONGEST_MS = 10_000;

/** Time after which the list of workers is read again: all of them together read it about three times a second. */
const listAge = (workers: number): number => Math.min(Math.max(10_000, workers * 300), 300_000);

/** Milliseconds until a worker looks again, where so many do: `base` for few, with jitter so that they do not look together. */
export const pauseOf = (workers: number, base: number, random = Math.random()): number =>
  Math.min(Math.max(base, (workers * 1000) / LOOKS_PER_SECOND), Math.max(base, LONGEST_MS)) * (0.5 + random);

/** Milliseconds between the turns of two workers at a new item, and the longest wait for a turn. */
const TURN_MS = 50;
const LAST_TURN_MS = 1_000;

/**
 * Returns after how many milliseconds a worker looks at an item of which all are told: one of them at once, chosen by the ticket, and a few
 * after it in case that it has no free slot. Undefined for the others, who look at their next time.
 */
export function turnOf(ticket: number, worker: number, workers: number[]): number | undefined {
  const rank = workers.indexOf(worker);
  // A worker that the list does not have yet.
  if (rank < 0) return 0;
  const turn = (rank - (ticket % workers.length) + workers.length) % workers.length;
  return turn * TURN_MS > LAST_TURN_MS ? undefined : turn * TURN_MS;
}

/** Numbers of the live workers, as they were some time ago. */
export class Fleet {
  readonly #db: Database;
  #workers: number[] = [];
  #until = 0;
  #isReading = false;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Workers as they were read last; has them read again where that was long ago. */
  get workers(): number[] {
    if (performance.now() > this.#until && !this.#isReading) {
      this.#isReading = true;
      this.#read()
        // Without an answer the former list stays, and is read at the next time.
        .catch(() => undefined)
        .finally(() => (this.#isReading = false));
    }
    return this.#workers;
  }

  async #read(): Promise<void> {
    const { rows } = await sql<{ worker: number }>`${LIVE_WORKERS} order by worker`.execute(this.#db);
    this.#workers = rows.map(({ worker }) => worker);
    this.#until = performance.now() + listAge(this.#workers.length) * (0.5 + Math.random());
  }
}

const fleets = new WeakMap<Database, Fleet>();

/** Returns the fleet of a process, which reads the list over this database. */
export function fleetOf(db: Database): Fleet {
  let fleet = fleets.get(db);
  if (!fleet) fleets.set(db, (fleet = new Fleet(db)));
  return fleet;
}

/** Looks again and again, in a pace that suits the number of workers. */
export class Poll {
  readonly #db: Database;
  readonly #baseMs: number;
  readonly #look: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(db: Database, baseMs: number, look: () => void) {
    this.#db = db;
    this.#baseMs = baseMs;
    this.#look = look;
  }

  start(): void {
    this.#timer = setTimeout(
      () => {
        this.start();
        this.#look();
      },
      pauseOf(fleetOf(this.#db).workers.length, this.#baseMs),
    );
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
