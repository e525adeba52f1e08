/** Lines that wait for a slow client. */
const MOST_LINES = 1_000;
/** Characters of the lines that wait for a slow client; the last line may go beyond. */
const MOST_CHARACTERS = 1024 * 1024;
/** Characters that a client is given at once. */
const PART_CHARACTERS = 64 * 1024;
/** Milliseconds that a full backlog waits for its client before lines are skipped. */
const PATIENCE_MS = 5_000;

/** Next part for the client; `skipped` lines were left out before `text`. Empty where nothing came in time. */
interface Part {
  skipped: number;
  text: string;
}

/** Line that waits, after `skipped` others that were left out. `isKept` if it waits as long as it takes. */
interface Waiting {
  skipped: number;
  text: string;
  isKept: boolean;
}

/**
 * Lines between a log and a client who may read slower than the log is written. It never grows: a full one waits for some seconds, then the
 * oldest lines that are not kept are skipped and counted until the client has caught up.
 */
export class Backlog {
  #waiting: Waiting[] = [];
  #characters = 0;
  /** Waiting lines that are not kept. */
  #skippable = 0;
  /** Lines that were skipped behind the last one that waits. */
  #skipped = 0;
  #isSkipping = false;
  #end: { error?: unknown } | undefined;
  #wakeReader = () => {};
  #wakeWriter = () => {};
  readonly #signal: AbortSignal;
  readonly #patienceMs: number;

  constructor(signal: AbortSignal, patienceMs = PATIENCE_MS) {
    this.#signal = signal;
    this.#patienceMs = patienceMs;
    signal.addEventListener('abort', () => this.#wake(), { once: true });
  }

  get #isFull(): boolean {
    return this.#waiting.length >= MOST_LINES || this.#characters >= MOST_CHARACTERS;
  }

  /** Resolves when another line may be added. A kept line waits as long as it takes; for others old ones that are not kept are skipped. */
  async room(isKept: boolean): Promise<void> {
    while (this.#isFull && !this.#signal.aborted) {
      if (isKept || this.#skippable === 0) await this.#isTaken();
      else if (this.#isSkipping || !(await this.#isTaken(this.#patienceMs))) this.#skip();
    }
  }

  /** Adds a line behind the others. One that `isKept` is never skipped. */
  add(text: string, isKept: boolean): void {
    this.#waiting.push({ skipped: this.#skipped, text, isKept });
    this.#skipped = 0;
    this.#characters += text.length;
    if (!isKept) this.#skippable++;
    this.#wakeReader();
  }

  /** Ends the backlog behind what waits; with an error, `take` throws it then. */
  end(end: { error?: unknown } = {}): void {
    this.#end ??= end;
    this.#wakeReader();
  }

  /** Returns the next part: empty after `ms` without a line, undefined at the end. */
  async take(ms: number): Promise<Part | undefined> {
    if (this.#waiting.length === 0 && !this.#end && !this.#signal.aborted) await this.#isAdded(ms);
    if (this.#signal.aborted) return undefined;
    if (this.#waiting.length > 0) return this.#shift();
    if (this.#end?.error !== undefined) throw this.#end.error;
    return this.#end ? undefined : { skipped: 0, text: '' };
  }

  /** Takes the next lines, up to the place where others were skipped. */
  #shift(): Part {
    let size = 0;
    let count = 0;
    while (count < this.#waiting.length && size < PART_CHARACTERS) {
      if (count > 0 && this.#waiting[count]!.skipped > 0) break;
      size += this.#waiting[count++]!.text.length;
    }
    const taken = this.#waiting.splice(0, count);
    this.#characters -= size;
    this.#skippable -= taken.filter(({ isKept }) => !isKept).length;
    if (this.#waiting.length === 0) this.#isSkipping = false;
    this.#wakeWriter();
    return { skipped: taken[0]!.skipped, text: taken.map(({ text }) => text).join('') };
  }

  /** Skips the older half of the waiting lines that are not kept. */
  #skip(): void {
    this.#isSkipping = true;
    let left = Math.ceil(this.#skippable / 2);
    this.#skippable -= left;
    /** Lines that were skipped before the next one that stays. */
    let skipped = 0;
    const stays: Waiting[] = [];
    for (const line of this.#waiting) {
      skipped += line.skipped;
      if (!line.isKept && left > 0) {
        left--;
        skipped++;
        this.#characters -= line.text.length;
        continue;
      }
      stays.push({ ...line, skipped });
      skipped = 0;
    }
    this.#skipped += skipped;
    this.#waiting = stays;
  }

  /** Waits until the client takes something; false if it does not in time. */
  #isTaken(ms?: number): Promise<boolean> {
    return woken(ms, (wake) => (this.#wakeWriter = wake));
  }

  #isAdded(ms: number): Promise<boolean> {
    return woken(ms, (wake) => (this.#wakeReader = wake));
  }

  #wake(): void {
    this.#wakeReader();
    this.#wakeWriter();
  }
}

function woken(ms: number | undefined, listen: (wake: () => void) => void): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = ms === undefined ? undefined : setTimeout(() => resolve(false), ms);
    listen(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
