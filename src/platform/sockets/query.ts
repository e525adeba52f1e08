import { invalidField } from '#kernel/errors.ts';

/** Elements of one list in a query. */
const MAX_ELEMENTS = 1000;

/**
 * Reads the query of a socket. `command[0]=sh&command[1]=-c` is the list `command`; an empty value outside of lists is none.
 * Throws 400 where a list has a gap.
 */
export function readQuery(text: string): Record<string, unknown> {
  const query: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  const lists = new Map<string, Map<number, string>>();
  for (const [key, value] of new URLSearchParams(text)) {
    const element = /^(\w+)\[(\d{1,4})\]$/.exec(key);
    if (!element) {
      if (value !== '') query[key] = value;
      continue;
    }
    const [, name, index] = element;
    const list = lists.get(name!) ?? new Map<number, string>();
    lists.set(name!, list.set(Number(index), value));
  }
  for (const [name, list] of lists) {
    const elements = Array.from({ length: Math.min(list.size, MAX_ELEMENTS) }, (_, index) => list.get(index));
    const gap = elements.indexOf(undefined);
    if (gap >= 0 || list.size > MAX_ELEMENTS)
      throw invalidField(
        `${name}[${gap >= 0 ? gap : MAX_ELEMENTS}]`,
        `must be there: elements are numbered from 0 without a gap, at most ${MAX_ELEMENTS}`,
      );
    query[name] = elements;
  }
  return query;
}
