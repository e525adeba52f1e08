/** Length of a window in milliseconds. */
const WINDOW_MS = 60_000;
/** Entries that a map of this process remembers. */
const MOST_REMEMBERED = 10_000;

/** Counts of calls by key, each in a window of a minute that begins with its first call. */
export class CallWindows {
  readonly #windows = new Map<string, { count: number; until: number }>();

  /** Counts a call. False if it is one more than `most` in its window. */
  count(key: string, most: number): boolean {
    const now = performance.now();
    const window = this.#windows.get(key);
    if (!window || window.until <= now) {
      remember(this.#windows, key, { count: 1, until: now + WINDOW_MS });
      return true;
    }
    if (window.count >= most) return false;
    window.count++;
    return true;
  }

  /** Begins the window of a key anew. */
  forget(key: string): void {
    this.#windows.delete(key);
  }
}

/** Sets an entry as the newest one, and drops the oldest where there are too many. */
export function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MOST_REMEMBERED) map.delete(map.keys().next().value!);
}
