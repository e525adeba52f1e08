import { isListShape, type Shape } from '#kernel/parsing/formats.ts';

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:]/g;

/** Object or list that is being read, with the shape of the value that follows. */
interface Level {
  shape: Shape | undefined;
  next: Shape | undefined;
  seen: Set<string>;
}

/**
 * Throws Error for a key of the shape that is repeated or in another case. Programs in Go, such as builders of images, take a key in any
 * case and join repeated objects, while JSON.parse keeps the last value: they would see other values than this program. The text must be
 * JSON.
 */
export function refuseAmbiguousKeys(text: string, shape: Shape): void {
  const levels: Level[] = [];
  let last = '';
  for (const [token] of text.matchAll(TOKEN)) {
    const level = levels.at(-1);
    if (token === '{' || token === '[') levels.push(levelOf(token, level ? level.next : shape));
    else if (token === '}' || token === ']') levels.pop();
    else if (token === ':') level!.next = shapeAt(level!, last);
    last = token;
  }
}

const levelOf = (token: '{' | '[', shape: Shape | undefined): Level => ({
  shape: token === '{' ? shape : undefined,
  next: token === '[' && shape !== undefined && isListShape(shape) ? shape[0] : undefined,
  seen: new Set(),
});

/** Returns the shape of the value of a key, which is given as it is written. */
function shapeAt({ shape, seen }: Level, written: string): Shape | undefined {
  if (typeof shape !== 'object' || isListShape(shape)) return undefined;
  const key = JSON.parse(written) as string;
  const name = Object.keys(shape).find((field) => folded(field) === folded(key));
  if (name === undefined) return undefined;
  if (name !== key) throw new Error(`its key ${JSON.stringify(key)} must be written ${JSON.stringify(name)}`);
  if (seen.has(name)) throw new Error(`its key ${JSON.stringify(name)} is repeated`);
  seen.add(name);
  return shape[name];
}

/** Returns the text without differences of case, as Go folds them: letters such as ſ and K are s and k. */
const folded = (text: string): string => text.toUpperCase().toLowerCase();
