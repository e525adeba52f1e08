import { setTimeout as sleep } from 'node:timers/promises';

interface Look<T> {
  followers: number;
  /** Counts values; 0 before the first. */
  version: number;
  value?: T;
  failure?: { error: unknown };
  /** Followers that wait for the next value. */
  waiting: Set<() => void>;
}

/** Reads things in intervals while clients follow them, once for all clients that follow the same thing. */
export class SharedLooks<T> {
  readonly #everyMs: number;
  readonly #looks = new Map<string, Look<T>>();

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /**
   * Yields what `read` answers now, then its later answers, until the signal is aborted. A slow follower gets the newest one. `read` must answer
   * the same to every follower of the key, within a limit of its own; its error ends all of them.
   */
  async *follow(key: string, read: () => Promise<T>, signal: AbortSignal): AsyncGenerator<T, void, undefined> {
    const known = this.#looks.get(key);
    const look = known ?? this.#begin(key);
    look.followers++;
    if (!known) void this.#run(key, look, read);
    let wake = () => {};
    const leave = () => wake();
    signal.addEventListener('abort', leave, { once: true });
    try {
      for (let seen = 0; !signal.aborted;) {
        if (look.failure) throw look.failure.error;
        if (look.version > seen) {
          seen = look.version;
          yield look.value!;
        } else
          await new Promise<void>((resolve) => {
            wake = resolve;
            look.waiting.add(resolve);
          });
      }
    } finally {
      look.followers--;
      signal.removeEventListener('abort', leave);
    }
  }

  #begin(key: string): Look<T> {
    const look: Look<T> = { followers: 0, version: 0, waiting: new Set() };
    this.#looks.set(key, look);
    return look;
  }

  /** Never rejects. */
  async #run(key: string, look: Look<T>, read: () => Promise<T>): Promise<void> {
    try {
      while (look.followers > 0) {
        look.value = await read();
        look.version++;
        wakeAll(look);
        await sleep(this.#everyMs, undefined, { ref: false });
      }
    } catch (error) {
      look.failure = { error };
    }
    this.#looks.delete(key);
    wakeAll(look);
  }
}

function wakeAll({ waiting }: Look<unknown>): void {
  for (const wake of waiting) wake();
  waiting.clear();
}
