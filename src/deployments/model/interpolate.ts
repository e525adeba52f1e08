/** Reason why keys have no value. */
export interface VariableProblem {
  code: 'CYCLE' | 'SOURCE_MISSING' | 'EXTERNAL_SECRET' | 'SAME_PATH' | 'TOO_LARGE';
  keys: string[];
  /** For people: names the keys. */
  message: string;
}

/** A text that may name other keys as `{{KEY}}`. */
export interface Node {
  text: string;
  isSecret: boolean;
  /** True if neither the text nor anything that names its key may be used. */
  isWithheld?: boolean;
  /** True if the text is taken as it is, without replacing `{{KEY}}`. */
  verbatim?: boolean;
}

/** A text with everything replaced; a secret when one was put into it, and withheld when something withheld was. */
export interface Expanded {
  text: string;
  isSecret: boolean;
  isWithheld: boolean;
}

/**
 * Characters of all expanded values together. Linux gives a program 2 MiB for its environment at most; the rest is for files. Without a
 * limit thirty variables that each name the next one twice would take all memory.
 */
const LIMIT = 16 * 1024 * 1024;

const REFERENCE = /\{\{([a-zA-Z_][a-zA-Z0-9_]*)\}\}/g;

/**
 * Replaces `{{KEY}}` by that key's value in every node, and then in the contents of files. Nothing refers to files
 * (docs/contributing/rules.md 33). An unknown key stays as written, with a warning. Keys that can't have a value are added to `failures`,
 * with the problem at their root. Keys are sorted first, so that values, warnings and reported cycles don't depend on the order of the
 * nodes.
 */
export function expand(
  nodes: ReadonlyMap<string, Node>,
  contents: ReadonlyMap<string, Node>,
  failures: Map<string, VariableProblem>,
): { values: Map<string, Expanded>; inside: Map<string, Expanded>; warnings: string[] } {
  const values = new Map<string, Expanded>();
  const warnings: string[] = [];
  const budget = { left: LIMIT };
  const finish = (key: string, node: Node, into: Map<string, Expanded>) => {
    if (failures.has(key)) return;
    const expanded = replace(node, values, budget);
    if (!expanded) return void failures.set(key, tooLarge(key));
    into.set(key, expanded);
    for (const unknown of referencesOf(node).filter((other) => !nodes.has(other)))
      warnings.push(`${key} names {{${unknown}}}, which is no variable here: it stays as written.`);
  };
  for (const key of [...nodes.keys()].sort())
    for (const ready of postorder(key, nodes, values, failures)) finish(ready, nodes.get(ready)!, values);
  const inside = new Map<string, Expanded>();
  for (const key of [...contents.keys()].sort()) {
    const node = contents.get(key)!;
    const failed = referencesOf(node).find((other) => failures.has(other));
    if (failed !== undefined) failures.set(key, failures.get(failed)!);
    finish(key, node, inside);
  }
  return { values, inside, warnings };
}

/**
 * Returns the keys that a key needs and that have no value yet, dependencies first and the key itself last. An explicit stack replaces
 * recursion: a chain of thousands would overflow the program's. Keys on a cycle, and keys that need a failed one, are added to `failures`
 * here.
 */
function postorder(
  start: string,
  nodes: ReadonlyMap<string, Node>,
  values: ReadonlyMap<string, Expanded>,
  failures: Map<string, VariableProblem>,
): string[] {
  const order: string[] = [];
  const done = new Set<string>();
  const isDone = (key: string) => values.has(key) || done.has(key);
  const frame = (key: string) => ({ key, needs: referencesOf(nodes.get(key)!) });
  const isSettled = isDone(start) || failures.has(start);
  if (!isSettled && isPlain(nodes.get(start)!)) return [start];
  const stack = isSettled ? [] : [frame(start)];
  const open = new Set(stack.map(({ key }) => key));
  while (stack.length > 0) {
    const { key, needs } = stack.at(-1)!;
    const next = needs.shift();
    if (next === undefined) {
      stack.pop();
      open.delete(key);
      done.add(key);
      order.push(key);
      continue;
    }
    if (!nodes.has(next)) continue;
    if (open.has(next)) fail(key, cycle([...open].slice([...open].indexOf(next))));
    else if (!isDone(next) && !failures.has(next)) {
      stack.push(frame(next));
      open.add(next);
      // Asked again when it is done, so that its failure reaches this key as well.
      needs.unshift(next);
    } else if (failures.has(next)) fail(key, failures.get(next)!);
  }
  return order;

  function fail(key: string, problem: VariableProblem): void {
    if (!failures.has(key)) failures.set(key, problem);
  }
}

/** Returns whether a text names no key. It is cheap, because most values name none and a large environment has thousands of them. */
const isPlain = (node: Node): boolean => node.verbatim === true || !node.text.includes('{{');

const referencesOf = (node: Node): string[] =>
  isPlain(node) ? [] : [...new Set([...node.text.matchAll(REFERENCE)].map((match) => match[1]!))].sort();

/**
 * Returns the problem of a cycle, which begins with the alphabetically first key: the same cycle has the same name wherever it was entered.
 */
function cycle(keys: string[]): VariableProblem {
  const first = keys.indexOf([...keys].sort()[0]!);
  const turned = [...keys.slice(first), ...keys.slice(0, first)];
  return {
    code: 'CYCLE',
    keys: turned,
    message: `The variables name each other in a circle: ${[...turned, turned[0]].join(' -> ')}.`,
  };
}

const tooLarge = (key: string): VariableProblem => ({
  code: 'TOO_LARGE',
  keys: [key],
  message: `${key} makes the expanded variables larger than ${LIMIT / 1024 / 1024} MiB together.`,
});

/** Returns a node's text with every key that has a value replaced; undefined if it doesn't fit into the budget. */
function replace(node: Node, values: ReadonlyMap<string, Expanded>, budget: { left: number }): Expanded | undefined {
  const parts: string[] = [];
  let { isSecret, isWithheld = false } = node;
  let at = 0;
  const take = (part: string): boolean => {
    budget.left -= part.length;
    parts.push(part);
    return budget.left >= 0;
  };
  for (const match of isPlain(node) ? [] : node.text.matchAll(REFERENCE)) {
    const value = values.get(match[1]!);
    if (!take(node.text.slice(at, match.index)) || !take(value ? value.text : match[0])) return undefined;
    isSecret ||= value?.isSecret ?? false;
    isWithheld ||= value?.isWithheld ?? false;
    at = match.index + match[0].length;
  }
  return take(node.text.slice(at)) ? { text: parts.join(''), isSecret, isWithheld } : undefined;
}
