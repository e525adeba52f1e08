import type { LogLine } from '#runtimes/runtime.ts';

/** Number of lines that may wait for a slow reader; at this number the writers pause. */
const MAX_WAITING = 1000;

/** Queue of log lines between several writers and one reader. It ends without an error when the signal is aborted. */
export class LineQueue {
  #lines: LogLine[] = [];
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
    this.#wakeReader();
  }

  /** Resolves when there is room for more lines, or the reader has stopped. */
  async room(): Promise<void> {
    while (this.#lines.length >= MAX_WAITING && !this.#signal.aborted)
      await new Promise<void>((resolve) => this.#writers.push(resolve));
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wakeReader();
  }

  async *lines(): AsyncGenerator<LogLine> {
    for (;;) {
      if (this.#signal.aborted) return;
      for (const line of this.#lines.splice(0)) {
        yield line;
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
