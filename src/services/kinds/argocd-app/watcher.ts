import type { Platform } from '#platform/context.ts';
import { syncNext } from '#services/kinds/argocd-app/sync.ts';

const LOOK_MS = 5_000;
/** Number of Argo CDs that a process reads at the same time. A slow one delays few others. */
const AT_ONCE = 4;

/** Polls every Argo CD: level-triggered, in any number of processes. */
export class ArgoCdWatcher {
  readonly #platform: Platform;
  readonly #abort = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #again = false;

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), LOOK_MS);
    void this.look();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#abort.abort();
    await this.#looking;
  }

  /** Starts a look for an Argo CD that is due: call it on a message of `ARGO_CD`. */
  nudge(): void {
    this.#again = this.#looking !== undefined;
    void this.look();
  }

  /** Reads all that are due; joins a look that is already under way. */
  look(): Promise<void> {
    return (this.#looking ??= Promise.all(Array.from({ length: AT_ONCE }, () => this.#readDue())).then(() => {
      this.#looking = undefined;
      const again = this.#again;
      this.#again = false;
      if (again && !this.#abort.signal.aborted) return this.look();
    }));
  }

  async #readDue(): Promise<void> {
    try {
      while (!this.#abort.signal.aborted && (await syncNext(this.#platform, this.#abort.signal)));
    } catch (error) {
      if (!this.#abort.signal.aborted)
        this.#platform.log.warn({ err: error }, 'the apps of an Argo CD could not be landed; they are read again');
    }
  }
}
