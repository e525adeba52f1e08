import { printable } from '#kernel/printable.ts';

/** Prints an answer. Names, log lines and answers of others stand in it: nothing in them is obeyed by a terminal. */
export const print = (text: string): void => console.log(printable(text));

/** Prints what is not the answer itself, on standard error. */
export const printAside = (text: string): void => console.error(printable(text));

/** Calls back once everything printed on standard output is written, or can no longer be. */
export function afterPrinted(done: () => void): void {
  // Nobody reads the output any more: that changes nothing about the end.
  process.stdout.once('error', () => undefined);
  process.stdout.write('', () => done());
}
