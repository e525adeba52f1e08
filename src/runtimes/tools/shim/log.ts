import { closeSync, fstatSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';

/** A line of the log file, JSON: ISO time, stream, text. */
export interface LoggedLine {
  time: string;
  stream: 'stdout' | 'stderr';
  text: string;
}

/** Longer lines are cut into several, so that a reader never holds more than this many characters. */
const LONGEST_LINE = 16_384;

/** Appends lines to a file; when it gets too long it becomes `<path>.1`, that one `.2`, and the last is dropped. */
export class RotatingLog {
  readonly #path: string;
  readonly #maxBytes: number;
  readonly #files: number;
  #fd: number;
  #size: number;

  constructor(path: string, options: { maxBytes: number; files: number }) {
    this.#path = path;
    this.#maxBytes = options.maxBytes;
    this.#files = options.files;
    this.#fd = openSync(path, 'a', 0o600);
    this.#size = fstatSync(this.#fd).size;
  }

  write(line: LoggedLine): void {
    const text = `${JSON.stringify(line)}\n`;
    if (this.#size > 0 && this.#size + text.length > this.#maxBytes) this.#rotate();
    this.#size += writeSync(this.#fd, text);
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

/** Replaces secret values of 4 characters or more, each line of those that have several (decisions.md 36). */
export function masker(secrets: readonly string[]): (text: string) => string {
  const parts = secrets
    .flatMap((secret) => secret.split('\n'))
    .map((part) => part.trim())
    .filter((part) => part.length >= 4)
    .sort((a, b) => b.length - a.length);
  return (text) => parts.reduce((masked, part) => masked.replaceAll(part, '***'), text);
}

/** Cuts a stream of bytes into lines. */
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
