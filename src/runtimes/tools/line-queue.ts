import type { LogLine } from '#runtimes/runtime.ts';

/** Lines that wait for a slow reader. At this number, or at this many characters, the writers pause. */
const MOST_LINES = 1000;
const MOST_CHARACTERS = 1024 * 1024;

/** Queue of log lines between several writers and one reader. It ends without an error when the signal is aborted. */
export class LineQueue {
  #lines: LogLine[] = [];
  #characters = 0;
  #failure: { error: unknown } | undefined;
  #wakeReader: () => void = () => undefined;
  #writers: (() => void)[] = [];
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#wakeAll(), { once: true });
  }

  push(line: LogLine): void {
    this.#lines.push(line);
    this.#characters += line.text.length;
    this.#wakeReader();
  }

  get #isFull(): boolean {
    return this.#lines.length >= MOST_LINES || this.#characters >= MOST_CHARACTERS;
  }

  /** Resolves when there is room for more lines, or the reader has stopped. */
  async room(): Promise<void> {
    while (this.#isFull && !this.#signal.aborted) await new Promise<void>((resolve) => this.#writers.push(resolve));
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wakeReader();
  }

  async *lines(): AsyncGenerator<LogLine> {
    for (;;) {
      if (this.#signal.aborted) return;
      // Lines that the reader holds still count: writers go on when it comes back for more.
      for (const line of this.#lines.splice(0)) {
        yield line;
        this.#characters -= line.text.length;
        if (this.#signal.aborted) return;
      }
      this.#wakeWriters();
      if (this.#failure) throw this.#failure.error;
      if (this.#lines.length === 0 && !this.#signal.aborted)
        await new Promise<void>((resolve) => (this.#wakeReader = resolve));
    }
  }

  #wakeAll(): void {
    this.#wakeReader();
    this.#wakeWriters();
  }

  #wakeWriters(): void {
    for (const wake of this.#writers.splice(0)) wake();
  }
}
