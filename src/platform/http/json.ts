import sjson from 'secure-json-parse';

/** Values that one body may hold: half a million of them, lists in lists or keys of one object, hold everybody up for 50 ms and more. */
export const MAX_VALUES = 50_000;

/**
 * Reads JSON that somebody sent. Throws SyntaxError for a text that is none, for keys that reach an object's prototype, and for more values
 * than `MAX_VALUES`.
 */
export function parseJson(text: string): unknown {
  // Each takes a character at least.
  if (text.length > MAX_VALUES && countValues(text) > MAX_VALUES)
    throw new SyntaxError(`it holds more than ${MAX_VALUES} values. Send them in several requests.`);
  return sjson.parse(text, { protoAction: 'error', constructorAction: 'error' });
}

/** Values of a JSON text by the brackets that open them and the commas between them, or one more; what stands in texts is not counted. */
function countValues(text: string): number {
  let count = 1;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfText(text, at);
    else if (character === '[' || character === '{' || character === ',') count++;
  }
  return count;
}

/** Where the text that begins at a quote ends; the end of the whole where it never does. */
function endOfText(text: string, begin: number): number {
  for (let at = begin + 1; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '"') return at;
  }
  return text.length;
}
