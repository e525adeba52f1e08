import { CallWindows, remember } from '#services/pushes/call-windows.ts';

/** Limits of calls without a right one among them, for one address and webhook in a window: of webhooks in use, and of others. */
const MOST_IN_USE = 600;
const MOST_UNKNOWN = 60;

/**
 * Limits calls without the right signature, by address and webhook: behind a proxy that is not trusted all callers have one address, and hosted
 * providers call all webhooks from the same ones, so what comes for one webhook must not keep out the calls of another. A call counts before its body
 * is read, and a right one forgets those before it. A webhook whose provider has called rightly is in use, and may get ten times as many.
 */
export class FailedCalls {
  readonly #windows = new CallWindows();
  readonly #inUse = new Map<string, true>();

  /** Counts a call before its body is read. False if it is refused: too many came without a right one among them. */
  begin(address: string, webhookId: string): boolean {
    return this.#windows.count(keyOf(address, webhookId), this.#inUse.has(webhookId) ? MOST_IN_USE : MOST_UNKNOWN);
  }

  /** Forgets the calls from an address from which the provider of the webhook calls. */
  accept(address: string, webhookId: string): void {
    this.#windows.forget(keyOf(address, webhookId));
    remember(this.#inUse, webhookId, true);
  }
}

const keyOf = (address: string, webhookId: string): string => `${address} ${webhookId}`;
