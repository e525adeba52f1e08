import sjson from 'secure-json-parse';
import { refuseAmbiguousKeys } from '#kernel/parsing/ambiguous-keys.ts';
import { isListShape, type Shape, type ShapeOptions } from '#kernel/parsing/formats.ts';
import { TooMuch } from '#kernel/parsing/problem.ts';

/** Reads JSON without the keys that would change what its objects are. */
export function parseJson(text: string): unknown {
  try {
    return sjson.parse(text, { protoAction: 'error', constructorAction: 'error' });
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw new Error(`it is not JSON: ${(error as Error).message}`, { cause: error });
  }
}

/** Values that are kept of one text: the thread that asked takes a moment for each. */
const MAX_VALUES = 20_000;
/** Longest text that is kept of one value. */
const MAX_TEXT = 4_000;

/**
 * Reads JSON and keeps what a shape names. A value of another kind than the shape's is left out, in a list it is null. Empty text is null.
 * Throws TooMuch for more values than are kept.
 */
export function parseShape(text: string, { shape, refusesAmbiguousKeys = false }: ShapeOptions): unknown {
  if (text === '') return null;
  const given = parseJson(text);
  if (refusesAmbiguousKeys) refuseAmbiguousKeys(text, shape);
  let count = 0;
  const keep = (value: unknown, wanted: Shape): unknown => {
    if (++count > MAX_VALUES) throw new TooMuch(`it has more than ${MAX_VALUES} values`);
    if (wanted === true) return isScalar(value) ? value : undefined;
    if (wanted === 'text') return typeof value === 'string' ? value : undefined;
    if (wanted === 'json') return JSON.stringify(value);
    if (isListShape(wanted))
      return Array.isArray(value) ? value.slice(0, wanted[1]).map((item) => keep(item, wanted[0]) ?? null) : undefined;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    const fields = Object.entries(wanted).filter(([name]) => Object.hasOwn(value, name));
    return Object.fromEntries(
      fields.map(([name, inner]) => [name, keep((value as Record<string, unknown>)[name], inner)]),
    );
  };
  return keep(given, shape) ?? null;
}

const isScalar = (value: unknown): boolean =>
  typeof value === 'string' ? value.length <= MAX_TEXT : typeof value === 'number' || typeof value === 'boolean';
