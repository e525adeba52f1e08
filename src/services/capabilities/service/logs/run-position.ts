/** Runs that a position names; of more, the newest. */
const MOST_RUNS = 64;
/** Characters of the longest text that is read as a position. */
const MOST_CHARACTERS = 4_096;
/** Highest number of a chunk, and of a line in it: those of the database's type integer. */
const MOST = 2 ** 31 - 1;
/** End of the year 9999: later times have another form as text. */
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** Place in the log of one run: the lines of the chunks before `sequence`, and the first `lines` of that chunk, were sent. */
export interface RunPlace {
  sequence: number;
  lines: number;
}

export const START: RunPlace = { sequence: 0, lines: 0 };

const FORM = /^r\.([0-9a-z]{1,10})\.((?:[\w-]{22}~[0-9a-z]{1,7}~[0-9a-z]{1,7}(?:,|$))*)$/;

/**
 * Position in the log of a service that runs to an end: the place in each run that goes on or that has just ended, and the time of the newest run,
 * before which no other one is read. It is the `id` of events, with which a client goes on after that line on any process.
 */
export class RunPosition {
  /** Creation of the newest run, in milliseconds since 1970; 0 before the first. */
  #newest = 0;
  readonly #places = new Map<string, RunPlace>();

  /** Reads the `id` of an event; undefined for any other text. */
  static read(text: string): RunPosition | undefined {
    const found = text.length > MOST_CHARACTERS ? null : FORM.exec(text);
    if (!found) return undefined;
    const [, newest, runs] = found as unknown as [string, string, string];
    const position = new RunPosition();
    position.#newest = parseInt(newest, 36);
    if (position.#newest > LATEST_MS) return undefined;
    for (const run of runs.split(',').filter((part) => part !== '')) {
      const [id, sequence, lines] = run.split('~') as [string, string, string];
      const place = { sequence: parseInt(sequence, 36), lines: parseInt(lines, 36) };
      if (Math.max(place.sequence, place.lines) > MOST) return undefined;
      position.#places.set(toUuid(id), place);
    }
    return position.#places.size > MOST_RUNS ? undefined : position;
  }

  get newest(): number {
    return this.#newest;
  }

  get runs(): string[] {
    return [...this.#places.keys()];
  }

  /** Returns the place in a run; undefined for one that is not named. */
  placeIn(run: string): RunPlace | undefined {
    return this.#places.get(run);
  }

  /** Notes the place in a run. */
  set(run: string, place: RunPlace): void {
    this.#places.set(run, place);
    if (this.#places.size > MOST_RUNS) this.#places.delete(this.#places.keys().next().value!);
  }

  /** Notes that a run was created at this time. */
  advance(created: Date): void {
    this.#newest = Math.max(this.#newest, created.getTime());
  }

  /** Names a run no longer: no more lines come from it. */
  forget(run: string): void {
    this.#places.delete(run);
  }

  toString(): string {
    const runs = [...this.#places].map(
      ([run, { sequence, lines }]) => `${fromUuid(run)}~${sequence.toString(36)}~${lines.toString(36)}`,
    );
    return `r.${this.#newest.toString(36)}.${runs.join(',')}`;
  }
}

const fromUuid = (id: string): string => Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url');

function toUuid(text: string): string {
  const hex = Buffer.from(text, 'base64url').toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
