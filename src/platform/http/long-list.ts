import type { TSchema } from 'typebox';
import type { Database } from '#platform/database/index.ts';
import { serialize } from '#platform/http/compile.ts';

/**
 * Answer with a list that is too long for memory: `answer.body` is a list, or an object with `results` alone. It is sent part by part, no
 * faster than it is read, and has no ETag.
 */
export class LongList {
  /** Rows that the handler has read already. */
  readonly first: unknown[];
  /** Reads the next part; undefined behind the last one. An error cuts the connection, so that no half of a list looks whole. */
  readonly next: (db: Database) => Promise<unknown[] | undefined>;

  constructor(first: unknown[], next: LongList['next']) {
    this.first = first;
    this.next = next;
  }
}

/** Yields the text of a list. `takeTurn` does the work of one part when it is the reader's turn. */
export async function* textOf(
  body: TSchema,
  list: LongList,
  takeTurn: (work: (db: Database) => Promise<string | undefined>) => Promise<string | undefined>,
): AsyncIterable<string> {
  const schema = body as { type: string; properties: { results: TSchema } };
  const isBare = schema.type === 'array';
  // Without the brackets of the part's own.
  const inner = (part: unknown[]) => serialize(isBare ? body : schema.properties.results, part).slice(1, -1);
  yield isBare ? '[' : '{"results":[';
  let separator = '';
  for (let text: string | undefined = inner(list.first); text !== undefined;) {
    if (text) yield separator + text;
    if (text) separator = ',';
    text = await takeTurn(async (db) => {
      const part = await list.next(db);
      return part && inner(part);
    });
  }
  yield isBare ? ']' : ']}';
}
