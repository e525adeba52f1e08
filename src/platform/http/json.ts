import sjson from 'secure-json-parse';

/**
 * Number of values that one body may hold: half a million of them, in nested lists or as keys of one object, block the process for 50 ms
 * and more.
 */
export const MAX_VALUES = 50_000;

/**
 * Reads JSON from outside. Throws SyntaxError for malformed text, for keys that reach an object's prototype, and for more values than
 * `MAX_VALUES`.
 */
export function parseJson(text: string): unknown {
  // Each takes a character at least.
  if (text.length > MAX_VALUES && countValues(text) > MAX_VALUES)
    throw new SyntaxError(`it holds more than ${MAX_VALUES} values. Send them in several requests.`);
  return sjson.parse(text, { protoAction: 'error', constructorAction: 'error' });
}

/** Counts the values of a JSON text by its brackets and commas outside of strings; the count may be one too high. */
function countValues(text: string): number {
  let count = 1;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfText(text, at);
    else if (character === '[' || character === '{' || character === ',') count++;
  }
  return count;
}

/** Returns the end of the string that begins at a quote; the end of the whole text where the string never ends. */
function endOfText(text: string, begin: number): number {
  for (let at = begin + 1; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '"') return at;
  }
  return text.length;
}
