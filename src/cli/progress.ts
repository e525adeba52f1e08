const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/** Shows what is being done when it takes longer than a second: a spinner on a terminal, a line elsewhere. */
export class Progress {
  #timer: NodeJS.Timeout | undefined;
  #text = '';

  show(text: string): void {
    this.clear();
    this.#text = text;
    const began = Date.now();
    let frame = 0;
    this.#timer = setInterval(
      () => {
        if (Date.now() - began < 1000) return;
        if (process.stderr.isTTY)
          process.stderr.write(
            `\r${FRAMES[frame++ % FRAMES.length]} ${this.#text} (${Math.round((Date.now() - began) / 1000)} s)`,
          );
        else if (frame++ === 0) process.stderr.write(`${this.#text}…\n`);
      },
      process.stderr.isTTY ? 100 : 500,
    );
    this.#timer.unref();
  }

  clear(): void {
    clearInterval(this.#timer);
    if (this.#timer && process.stderr.isTTY) process.stderr.write('\r\x1b[K');
    this.#timer = undefined;
  }
}
