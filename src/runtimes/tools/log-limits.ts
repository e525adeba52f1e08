/** Characters of the last lines of one instance that are read at once: of more, the newest. */
const MOST_OF_INSTANCE = 8 * 2 ** 20;
/** Characters of the last lines of all instances of a service. */
const MOST_OF_SERVICE = 64 * 2 ** 20;
/** Characters of a line of a container or pod; a longer one is cut, so that a program that writes no line end does not fill the memory. */
export const LONGEST_LINE = 64 * 1024;

/** Returns the characters of the last lines of each instance, where a service has this number of instances. */
export const charactersOf = (instances: number): number =>
  Math.min(MOST_OF_INSTANCE, Math.floor(MOST_OF_SERVICE / Math.max(1, instances)));

/** Last lines of one instance, in the order in which they are added: never more than a number of lines and of characters. */
export class LastLines<Line extends { text: string }> {
  #lines: Line[] = [];
  /** Lines at the beginning of `#lines` that are too many. */
  #over = 0;
  #characters = 0;
  readonly #most: { lines: number; characters: number };

  constructor(most: { lines: number; characters: number }) {
    this.#most = most;
  }

  add(line: Line): void {
    this.#lines.push(line);
    this.#characters += line.text.length;
    while (
      this.#lines.length - this.#over > this.#most.lines ||
      (this.#characters > this.#most.characters && this.#over < this.#lines.length)
    )
      this.#characters -= this.#lines[this.#over++]!.text.length;
    // Lines are moved seldom: each one once on average.
    if (this.#over <= 1_000 || this.#over <= this.#lines.length / 2) return;
    this.#lines.splice(0, this.#over);
    this.#over = 0;
  }

  get lines(): Line[] {
    return this.#lines.slice(this.#over);
  }
}
