/** Effect of a rest on the lease of the deployment and on its row. */
interface Resting {
  /** Records whether the deployment rests: one that does takes none of its organization's slots. */
  record(isResting: boolean): Promise<unknown>;
  /** Gives the slot of this worker back, or takes it again. */
  rest(isResting: boolean): void;
}

/**
 * Counts the services of a deployment that need this worker. While every one of them only waits for its cluster, the deployment rests: it
 * takes no slot, however long its rollouts take.
 */
export class Activity {
  readonly #resting: Resting;
  #active = 0;
  #waiting = 0;
  #isRecorded = false;
  #recording: Promise<void> | undefined;

  constructor(resting: Resting) {
    this.#resting = resting;
  }

  /** Runs the work of one service. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#active++;
    try {
      return await work();
    } finally {
      this.#active--;
      if (this.#waiting > 0) await this.#update();
    }
  }

  /** Runs a wait of one service, within `during`. Throws the error of the record where it cannot be written. */
  async whileWaiting<T>(wait: () => Promise<T>): Promise<T> {
    this.#active--;
    this.#waiting++;
    try {
      await this.#update();
      return await wait();
    } finally {
      this.#waiting--;
      this.#active++;
      await this.#update();
    }
  }

  async #update(): Promise<void> {
    this.#resting.rest(this.#active === 0);
    await (this.#recording ??= this.#record().finally(() => (this.#recording = undefined)));
  }

  /** Records the present state; states that pass while it is being written are not recorded. */
  async #record(): Promise<void> {
    while (this.#isRecorded !== (this.#active === 0)) {
      const isResting = this.#active === 0;
      await this.#resting.record(isResting);
      this.#isRecorded = isResting;
    }
  }
}
