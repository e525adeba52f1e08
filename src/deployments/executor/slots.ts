/**
 * Places for work of which only so much runs at a time. A place that becomes free goes to the waiting tenant that has the fewest, of several
 * to the one whose turn is longest ago, and within a tenant in the order of arrival: much work of one tenant holds up the others by what
 * already runs, not by what waits. Where a tenant may have a part of the places only, work of one that never ends leaves the rest to others.
 */
export class Slots {
  readonly #waiting: Waiting[] = [];
  readonly #tenants = new Map<string, Tenant>();
  /** Places that were given so far. */
  #given = 0;
  #free: number;
  readonly #mostOfTenant: number;

  constructor(most: number, mostOfTenant = most) {
    this.#free = most;
    this.#mostOfTenant = mostOfTenant;
  }

  /** Waits for a place and returns the function that gives it back, once. Throws the signal's reason as soon as it is aborted. */
  async take(tenant: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const free = this.takeFree(tenant);
    if (free) return free;
    await this.#wait(tenant, signal);
    return this.#leave(tenant);
  }

  /** Takes a place if there is one. Returns the function that gives it back, once; undefined where all are taken. */
  takeFree(tenant: string): (() => void) | undefined {
    if (this.#free <= 0 || !this.#mayHave(tenant)) return undefined;
    this.#give(tenant);
    return this.#leave(tenant);
  }

  #leave(tenant: string): () => void {
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#takeBack(tenant);
    };
  }

  #give(name: string): void {
    this.#free--;
    this.#tenants.set(name, { places: this.#of(name).places + 1, turn: ++this.#given });
  }

  #takeBack(name: string): void {
    this.#free++;
    const { places, turn } = this.#of(name);
    this.#tenants.set(name, { places: places - 1, turn });
    this.#takeNext()?.go();
    this.#forget(name);
  }

  /** Forgets a tenant that has nothing and waits for nothing. */
  #forget(name: string): void {
    const isThere = this.#of(name).places > 0 || this.#waiting.some(({ tenant }) => tenant === name);
    if (!isThere) this.#tenants.delete(name);
  }

  #mayHave(tenant: string): boolean {
    return this.#of(tenant).places < this.#mostOfTenant;
  }

  /** Takes the one whose turn it is out of those that wait. */
  #takeNext(): Waiting | undefined {
    const able = this.#waiting.filter(({ tenant }) => this.#mayHave(tenant));
    const next = able.reduce<Waiting | undefined>(
      (best, one) => (best && !isBefore(this.#of(one.tenant), this.#of(best.tenant)) ? best : one),
      undefined,
    );
    if (next) this.#waiting.splice(this.#waiting.indexOf(next), 1);
    return next;
  }

  #of(name: string): Tenant {
    return this.#tenants.get(name) ?? { places: 0, turn: 0 };
  }

  /** Resolves when the caller has a place. */
  #wait(tenant: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = {
        tenant,
        go: () => {
          signal.removeEventListener('abort', leave);
          this.#give(tenant);
          resolve();
        },
      };
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        this.#forget(tenant);
        reject(signal.reason as Error);
      };
      this.#waiting.push(waiting);
      signal.addEventListener('abort', leave, { once: true });
    });
  }
}

interface Tenant {
  places: number;
  /** Number of the place that it got last; 0 if it has got none. */
  turn: number;
}

const isBefore = (one: Tenant, other: Tenant): boolean =>
  one.places < other.places || (one.places === other.places && one.turn < other.turn);

interface Waiting {
  tenant: string;
  /** Gives the place. */
  go(): void;
}
