import { createHash } from 'node:crypto';

/** A stable id for what has none of its own: the same line has the same id whenever it is read. */
export function idOfLine(...parts: string[]): string {
  const hex = createHash('sha256').update(parts.join('\0')).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-9${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/**
 * Gives ids to the lines of a log in their order. A line has the same id in the list and in the stream, however much of the log is read. The
 * exception are equal lines that one writer wrote in the same millisecond: they are counted from the first one that is read.
 */
export class LineIds {
  readonly #writers = new Map<string, { at: string; counts: Map<string, number> }>();

  /** Returns the id of the next line; `writer` is its instance or run. */
  next(writer: string, at: string, text: string): string {
    let present = this.#writers.get(writer);
    if (present?.at !== at) this.#writers.set(writer, (present = { at, counts: new Map() }));
    const count = present.counts.get(text) ?? 0;
    present.counts.set(text, count + 1);
    return idOfLine(writer, at, text, String(count));
  }
}
