/** Limits of calls without a right one among them, for one address and webhook in a window: of webhooks in use, and of others. */
const MOST_IN_USE = 600;
const MOST_UNKNOWN = 60;
/** Length of a window in milliseconds. */
const WINDOW_MS = 60_000;
/** Windows and webhooks that are remembered. */
const MOST_REMEMBERED = 10_000;

/**
 * Limits calls without the right signature, by address and webhook: behind a proxy that is not trusted all callers have one address, and hosted
 * providers call all webhooks from the same ones, so what comes for one webhook must not keep out the calls of another. A call counts before its body
 * is read, and a right one forgets those before it. A webhook whose provider has called rightly is in use, and may get ten times as many.
 */
export class FailedCalls {
  readonly #windows = new Map<string, { count: number; until: number }>();
  readonly #inUse = new Map<string, true>();

  /** Counts a call before its body is read. False if it is refused: too many came without a right one among them. */
  begin(address: string, webhookId: string): boolean {
    const now = performance.now();
    const key = keyOf(address, webhookId);
    const window = this.#windows.get(key);
    if (!window || window.until <= now) {
      remember(this.#windows, key, { count: 1, until: now + WINDOW_MS });
      return true;
    }
    if (window.count >= (this.#inUse.has(webhookId) ? MOST_IN_USE : MOST_UNKNOWN)) return false;
    window.count++;
    return true;
  }

  /** Forgets the calls from an address from which the provider of the webhook calls. */
  accept(address: string, webhookId: string): void {
    this.#windows.delete(keyOf(address, webhookId));
    remember(this.#inUse, webhookId, true);
  }
}

const keyOf = (address: string, webhookId: string): string => `${address} ${webhookId}`;

/** Sets an entry as the newest one, and drops the oldest where there are too many. */
function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MOST_REMEMBERED) map.delete(map.keys().next().value!);
}
