/** Pairs of keys and values, as the options of helm take them. */
export interface Pairs {
  set: [string, string][];
  setString: [string, string][];
  setJson: [string, string][];
}

type Values = Record<string, unknown>;
type Step = string | number;

/** Largest index of a list, as in helm. */
const MOST_INDEX = 65_536;

/**
 * Makes values of pairs with the meaning that `--set-json`, `--set` and `--set-string` have in helm, in its order. `present` are the values
 * of files, those that count more first: an index changes their lists. Throws an error for people that names the key.
 */
export function setValues({ set, setString, setJson }: Pairs, present: unknown[]): Values {
  const values: Values = {};
  for (const [key, value] of setJson) assign(values, pathOf(key), parseJson(key, value), present);
  for (const [written, toValue] of [
    [set, typed],
    [setString, (text: string) => text],
  ] as const)
    for (const [key, text] of written)
      for (const [one, value] of assignments(key, text, toValue)) assign(values, pathOf(one), value, present);
  return values;
}

function parseJson(key: string, value: string): unknown {
  try {
    return JSON.parse(value);
  } catch (error) {
    throw new Error(`set_json ${key}: the value is no JSON once its variables are replaced.`, { cause: error });
  }
}

/** Splits at a character that no backslash precedes. Backslashes stay. */
function split(text: string, at: string): string[] {
  const parts = [''];
  for (let n = 0; n < text.length; n++) {
    const character = text[n]!;
    if (character === at) parts.push('');
    else parts[parts.length - 1] += character === '\\' && n + 1 < text.length ? character + text[++n]! : character;
  }
  return parts;
}

const unescape = (text: string): string => text.replaceAll(/\\(.)/gs, '$1');

/** Yields the keys and values of a pair: behind a comma stands another key, and braces make a list. */
function* assignments(key: string, text: string, toValue: (text: string) => unknown): Generator<[string, unknown]> {
  if (text.startsWith('{')) {
    const [list, rest] = listIn(key, text);
    yield [key, list.map((item) => toValue(unescape(item)))];
    if (rest !== '') yield* furtherOf(key, rest, toValue);
    return;
  }
  const [first, ...others] = split(text, ',');
  yield [key, toValue(unescape(first!))];
  if (others.length > 0) yield* furtherOf(key, `,${others.join(',')}`, toValue);
}

function* furtherOf(key: string, rest: string, toValue: (text: string) => unknown): Generator<[string, unknown]> {
  const [next, ...value] = split(rest.slice(1), '=');
  if (!rest.startsWith(',') || value.length === 0)
    throw new Error(
      `The value of ${key} has a comma, behind which helm takes another key=value: write \\, for a comma.`,
    );
  yield* assignments(next!, value.join('='), toValue);
}

/** Returns the items of a list `{a,b}`, and the text behind it. */
function listIn(key: string, text: string): [string[], string] {
  const [inside, ...rest] = split(text.slice(1), '}');
  if (rest.length === 0) throw new Error(`The value of ${key} begins a list with { and has no } at its end.`);
  return [inside === '' ? [] : split(inside!, ','), rest.join('}')];
}

/** Returns the value that helm makes of a text: truth values, null and whole numbers, else the text. */
function typed(text: string): unknown {
  if (text.toLowerCase() === 'true') return true;
  if (text.toLowerCase() === 'false') return false;
  if (text.toLowerCase() === 'null') return null;
  if (text === '0') return 0;
  const isNumber = /^[+-]?[1-9]\d*$/.test(text) && Number.isSafeInteger(Number(text));
  return isNumber ? Number(text) : text;
}

/** Parses a key such as `servers[0].port` or `nodeSelector.kubernetes\.io/os`. */
function pathOf(key: string): Step[] {
  return split(key, '.').flatMap((part): Step[] => {
    const [, name, indexes] = /^((?:[^[\\]|\\.)*)((?:\[\d+\])*)$/s.exec(part) ?? [];
    if (name === undefined || (name === '' && indexes === ''))
      throw new Error(`${key} is no key of values, such as image.tag or servers[0].port.`);
    const numbers = [...indexes!.matchAll(/\d+/g)].map(([digits]) => Number(digits));
    if (numbers.some((number) => number > MOST_INDEX)) throw new Error(`${key}: at most ${MOST_INDEX} is an index.`);
    return [...(name === '' ? [] : [unescape(name)]), ...numbers];
  });
}

function assign(values: Values, path: Step[], value: unknown, present: unknown[]): void {
  let at: Values | unknown[] = values;
  for (const [depth, step] of path.entries()) {
    const holder = at as Record<Step, unknown>;
    if (depth === path.length - 1) return define(holder, step, value);
    const isList = typeof path[depth + 1] === 'number';
    let next: unknown = Object.hasOwn(holder, step) ? holder[step] : undefined;
    if (isList !== Array.isArray(next) || typeof next !== 'object' || next === null) {
      next = isList ? listAt(present, path.slice(0, depth + 1)) : {};
      define(holder, step, next);
    }
    at = next as Values | unknown[];
  }
}

/** Sets a key whatever its name; missing items before an index are null. */
function define(holder: Record<Step, unknown>, step: Step, value: unknown): void {
  if (Array.isArray(holder)) while (holder.length < Number(step)) holder.push(null);
  Object.defineProperty(holder, step, { value, enumerable: true, configurable: true, writable: true });
}

/** Returns a copy of the list that the files have there; an empty one without. */
function listAt(present: unknown[], path: Step[]): unknown[] {
  for (const file of present) {
    let found: unknown = file;
    for (const step of path)
      found =
        typeof found === 'object' && found !== null && Object.hasOwn(found, step)
          ? (found as Record<Step, unknown>)[step]
          : undefined;
    if (Array.isArray(found)) return structuredClone(found);
  }
  return [];
}
