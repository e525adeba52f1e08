/** Calls without the right signature that an address has in a window, and the length of that in milliseconds. */
const MOST_FAILED = 60;
const WINDOW_MS = 60_000;
/** Addresses and webhooks that are remembered. */
const MOST_REMEMBERED = 10_000;

/**
 * Limits calls without the right signature, by address. Webhooks whose provider has called rightly are exempt: behind a proxy that is not
 * trusted, all callers have one address, and a stranger must not keep out the provider.
 */
export class FailedCalls {
  readonly #windows = new Map<string, { count: number; until: number }>();
  readonly #known = new Map<string, true>();

  /** Tells whether a call is refused before anything is read for it. */
  refuses(address: string, webhookId: string): boolean {
    const window = this.#windows.get(address);
    if (!window || window.count < MOST_FAILED || this.#known.has(webhookId)) return false;
    return window.until > performance.now();
  }

  /** Counts a call without the right signature. */
  count(address: string): void {
    const now = performance.now();
    const window = this.#windows.get(address);
    if (window && window.until > now) window.count++;
    else remember(this.#windows, address, { count: 1, until: now + WINDOW_MS });
  }

  /** Remembers that the provider of a webhook calls from the address. */
  accept(address: string, webhookId: string): void {
    this.#windows.delete(address);
    remember(this.#known, webhookId, true);
  }
}

/** Sets an entry as the newest one, and drops the oldest where there are too many. */
function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MOST_REMEMBERED) map.delete(map.keys().next().value!);
}
