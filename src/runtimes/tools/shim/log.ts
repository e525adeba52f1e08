import { closeSync, fstatSync, ftruncateSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { isDiskFull } from '#runtimes/tools/shim/state.ts';

/** Line of the log file, JSON: ISO time, stream, text. */
export interface LoggedLine {
  time: string;
  stream: 'stdout' | 'stderr';
  text: string;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Parses a line of a log file; null if it is damaged, such as by a machine that lost its power. */
export function parseLine(text: string): LoggedLine | null {
  let line: Partial<LoggedLine> | null;
  try {
    line = JSON.parse(text) as Partial<LoggedLine> | null;
  } catch {
    return null;
  }
  const isWhole =
    typeof line?.time === 'string' &&
    TIME.test(line.time) &&
    !Number.isNaN(Date.parse(line.time)) &&
    (line.stream === 'stdout' || line.stream === 'stderr') &&
    typeof line.text === 'string';
  return isWhole ? (line as LoggedLine) : null;
}

/** Length limit of a line in characters: longer lines are split, so that a reader holds no more. */
const LONGEST_LINE = 16_384;

/** Appends lines to a file. A full file becomes `<path>.1`, that one `.2`, and the last is dropped. */
export class RotatingLog {
  readonly #path: string;
  readonly #maxBytes: number;
  readonly #files: number;
  #fd: number;
  #size: number;
  #lost = 0;

  constructor(path: string, options: { maxBytes: number; files: number }) {
    this.#path = path;
    this.#maxBytes = options.maxBytes;
    this.#files = options.files;
    this.#fd = openSync(path, 'a', 0o600);
    this.#size = fstatSync(this.#fd).size;
  }

  /** Writes a line. If the disk has no space, the line is lost and counted, and the process continues. */
  write(line: LoggedLine): void {
    const lost = {
      ...line,
      stream: 'stderr',
      text: `${this.#lost} lines were lost: the disk had no space left.`,
    } as const;
    if (this.#lost > 0 && !this.#append(lost)) this.#lost++;
    else this.#lost = this.#append(line) ? 0 : 1;
  }

  #append(line: LoggedLine): boolean {
    const text = Buffer.from(`${JSON.stringify(line)}\n`);
    if (this.#size > 0 && this.#size + text.length > this.#maxBytes) this.#rotate();
    try {
      if (writeSync(this.#fd, text) === text.length) {
        this.#size += text.length;
        return true;
      }
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    }
    // Otherwise the partial line would run into the next one.
    ftruncateSync(this.#fd, this.#size);
    return false;
  }

  #rotate(): void {
    closeSync(this.#fd);
    rmSync(`${this.#path}.${this.#files - 1}`, { force: true });
    for (let n = this.#files - 2; n >= 1; n--) renameIfThere(`${this.#path}.${n}`, `${this.#path}.${n + 1}`);
    if (this.#files > 1) renameSync(this.#path, `${this.#path}.1`);
    else rmSync(this.#path);
    this.#fd = openSync(this.#path, 'a', 0o600);
    this.#size = 0;
  }
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Splits a stream of bytes into lines. */
export class LineCutter {
  readonly #decoder = new TextDecoder();
  readonly #onLine: (line: string) => void;
  #rest = '';

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(bytes: Buffer): void {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split('\n');
    this.#rest = lines.pop()!;
    for (const line of lines) this.#emit(line.endsWith('\r') ? line.slice(0, -1) : line);
    while (this.#rest.length > LONGEST_LINE * 2) {
      this.#onLine(this.#rest.slice(0, LONGEST_LINE));
      this.#rest = this.#rest.slice(LONGEST_LINE);
    }
  }

  end(): void {
    if (this.#rest) this.#emit(this.#rest);
    this.#rest = '';
  }

  #emit(line: string): void {
    for (let at = 0; at === 0 || at < line.length; at += LONGEST_LINE) this.#onLine(line.slice(at, at + LONGEST_LINE));
  }
}
