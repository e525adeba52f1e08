/** Reports how many of an image's layers are moved; one line per change, however much the engine reports in between. */
export class LayerCount {
  readonly #log: (line: string) => void;
  readonly #done: RegExp;
  readonly #where: string;
  readonly #known = new Set<string>();
  readonly #moved = new Set<string>();

  /** `done` fits the status of a layer that is moved; `where` ends the sentence (`layers are there`). */
  constructor(log: (line: string) => void, done: RegExp, where: string) {
    this.#log = log;
    this.#done = done;
    this.#where = where;
  }

  tell(id: string, status: string): void {
    // The reference itself comes as an id, too ("Pulling from …").
    if (/^Pulling from/.test(status)) return;
    this.#known.add(id);
    if (!this.#done.test(status) || this.#moved.has(id)) return;
    this.#moved.add(id);
    this.#log(`${this.#moved.size} of ${this.#known.size} layers are ${this.#where}.`);
  }
}
