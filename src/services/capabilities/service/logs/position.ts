import { hash } from 'node:crypto';
import type { LogLine } from '#runtimes/runtime.ts';

/** Milliseconds by which the lines of one instance may come later than those of others. */
const SLACK_MS = 60_000;
/** Instances that a position names; of more, those that wrote last. The others have one time in common. */
const MOST_INSTANCES = 64;
/** Characters of the longest text that is read as a position. */
const MOST_CHARACTERS = 4_096;

/** Last line of an instance that was sent. */
interface Last {
  /** Milliseconds since 1970. */
  at: number;
  /** Lines of the instance in that millisecond. */
  count: number;
  /** Short hash of its text. */
  text: string;
}

/** Last line of an instance that was sent, until a reader who resumes is past it. */
interface Awaited {
  last: Last;
  /** Lines of its millisecond that have come. */
  count: number;
  /** True if the line itself has come: none is missing behind it. */
  isFound: boolean;
}

/** End of the year 9999: later times have another form as text and do not compare with those of lines. */
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z');

const shortHash = (text: string): string => hash('sha1', text, 'base64url').slice(0, 6);

const FORM =
  /^i\.([0-9a-z]{1,10})\.([0-9a-z]{1,10})\.([0-9a-z]{1,10})\.((?:[\w-]{6}~[0-9a-z]{1,8}~[0-9a-z]{1,8}~[\w-]{6}(?:,|$))*)$/;

/**
 * Position in the log of several instances, which write at the same time: the last line of each that wrote lately. It is the `id` of events, with
 * which a client goes on after that line on any process.
 */
export class LogPosition {
  /** Time of the newest line, in milliseconds since 1970; 0 before the first. */
  #latest = 0;
  /** Time of the first line: none of before was wanted. */
  #begin = 0;
  /** Time of the newest line of instances that are not named: of those, the lines up to then were sent. 0 while all are named. */
  #unnamed = 0;
  /** The same as it was read. */
  #unnamedBefore = 0;
  readonly #last = new Map<string, Last>();
  /** Instances whose last line, or a later one, has not come yet. */
  readonly #awaited = new Map<string, Awaited>();
  /** False until a line of before, or a new one, has come: a gap before the lines of unknown instances is told once. */
  #isJoined = true;
  /** False where the lines that were sent last need not come again. */
  #tellsGaps = true;

  /** Reads the `id` of an event; undefined for any other text. */
  static read(text: string): LogPosition | undefined {
    const found = text.length > MOST_CHARACTERS ? null : FORM.exec(text);
    if (!found) return undefined;
    const position = new LogPosition();
    const [, latest, begin, unnamed, instances] = found as unknown as [string, string, string, string, string];
    position.#latest = parseInt(latest, 36);
    position.#begin = parseInt(begin, 36);
    position.#unnamed = position.#unnamedBefore = parseInt(unnamed, 36);
    if (Math.max(position.#latest, position.#begin, position.#unnamed) > LATEST_MS) return undefined;
    for (const one of instances.split(',').filter((part) => part !== '')) {
      const [key, delta, count, last] = one.split('~') as [string, string, string, string];
      const entry = { at: position.#latest - parseInt(delta, 36), count: parseInt(count, 36), text: last };
      position.#last.set(key, entry);
      position.#awaited.set(key, { last: entry, count: 0, isFound: false });
    }
    position.#isJoined = position.#last.size === 0;
    return position;
  }

  /** Earliest time of the lines to read, ISO 8601; undefined from the beginning. */
  get since(): string | undefined {
    const earliest = Math.max(this.#begin, this.#latest - SLACK_MS);
    return earliest > 0 ? new Date(earliest).toISOString() : undefined;
  }

  /** Notes the time (ISO 8601) from which on lines are read. Instances whose last line was earlier have no gap. */
  readFrom(since: string): void {
    const from = Date.parse(since);
    for (const awaited of this.#awaited.values()) awaited.isFound ||= awaited.last.at < from;
    if (this.#latest < from) this.#tellsGaps = false;
  }

  /** Tells no gaps: a narrower choice of lines need not contain those that were sent last. */
  join(): void {
    this.#tellsGaps = false;
  }

  has(instance: string): boolean {
    return this.#last.has(shortHash(instance));
  }

  /**
   * Takes the next line as read. Returns `sent` for one that the client has, `new` for any other, and `gap` for a new one before which lines
   * of its instance are missing: the last one that was sent has not come again.
   */
  take(line: LogLine): 'sent' | 'new' | 'gap' {
    const at = Date.parse(line.at);
    const key = shortHash(line.instance);
    const text = shortHash(line.text);
    const awaited = this.#awaited.get(key);
    if (awaited && at <= awaited.last.at) return this.#takeAgain(key, awaited, at, text);
    if (!this.#last.has(key) && at <= this.#unnamedBefore) return 'sent';
    this.#awaited.delete(key);
    const isGap = awaited ? !awaited.isFound : !this.#isJoined && at > this.#latest;
    if (awaited || isGap) this.#isJoined = true;
    this.#note(key, at, text);
    return isGap && this.#tellsGaps ? 'gap' : 'new';
  }

  /** Text of the position; undefined before the first line. */
  toString(): string | undefined {
    if (this.#latest === 0) return undefined;
    const instances = [...this.#last].flatMap(([key, { at, count, text }]) => {
      const delta = this.#latest - at;
      return delta > SLACK_MS ? [] : [`${key}~${delta.toString(36)}~${count.toString(36)}~${text}`];
    });
    const times = [this.#latest, this.#begin, this.#unnamed].map((time) => time.toString(36));
    return `i.${times.join('.')}.${instances.join(',')}`;
  }

  #takeAgain(key: string, awaited: Awaited, at: number, text: string): 'sent' {
    if (at < awaited.last.at) return 'sent';
    awaited.count++;
    if (text !== awaited.last.text) return 'sent';
    awaited.isFound = true;
    this.#isJoined = true;
    // The first lines of that millisecond may not have been sent: the last one is also known by its text.
    if (awaited.count >= awaited.last.count) this.#awaited.delete(key);
    return 'sent';
  }

  #note(key: string, at: number, text: string): void {
    this.#begin ||= at;
    this.#latest = Math.max(this.#latest, at);
    const last = this.#last.get(key);
    if (last && at < last.at) return;
    // In the order in which the instances wrote last.
    this.#last.delete(key);
    this.#last.set(key, { at, count: last?.at === at ? last.count + 1 : 1, text });
    if (this.#last.size <= MOST_INSTANCES) return;
    const [oldest, { at: unnamed }] = this.#last.entries().next().value!;
    this.#last.delete(oldest);
    this.#unnamed = Math.max(this.#unnamed, unnamed);
  }
}
