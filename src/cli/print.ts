import { printable } from '#kernel/printable.ts';

/** Prints an answer. Names, log lines and answers of others stand in it: nothing in them is obeyed by a terminal. */
export const print = (text: string): void => console.log(printable(text));

/** Prints what is not the answer itself, on standard error. */
export const printAside = (text: string): void => console.error(printable(text));
