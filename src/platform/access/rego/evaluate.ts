import { PolicyError } from '#platform/access/rego/lex.ts';
import type { Comparison, Expression, Rule, Statement } from '#platform/access/rego/syntax.ts';

/** Limit of steps, higher than a sensible policy needs: a policy that takes more is refused, so that it holds up no request. */
const MAX_STEPS = 5_000;
/** Characters or parts of an argument that a function gets through in the time of a step. */
const PARTS_A_STEP = 20;

/** Set of a policy. Its items are unique and in one order, so that equal sets compare as equal (`Evaluation.#setOf`). */
class RegoSet {
  readonly items: unknown[];
  constructor(items: unknown[]) {
    this.items = items;
  }
}

type Variables = Readonly<Record<string, unknown>>;

const text = (value: unknown): value is string => typeof value === 'string';

/** Functions that policies may call; undefined where an argument has the wrong type. */
export const FUNCTIONS: Record<string, { arity: number; call: (...args: any[]) => unknown }> = {
  startswith: { arity: 2, call: (all, part) => (text(all) && text(part) ? all.startsWith(part) : undefined) },
  endswith: { arity: 2, call: (all, part) => (text(all) && text(part) ? all.endsWith(part) : undefined) },
  contains: { arity: 2, call: (all, part) => (text(all) && text(part) ? all.includes(part) : undefined) },
  lower: { arity: 1, call: (all) => (text(all) ? all.toLowerCase() : undefined) },
  upper: { arity: 1, call: (all) => (text(all) ? all.toUpperCase() : undefined) },
  count: { arity: 1, call: (all) => (text(all) ? [...all].length : entriesOf(all)?.length) },
};

/**
 * The value of a rule for an input, or undefined. Statements are solved as in Rego: each tries the values that its references
 * can have, one after the other, and a body holds if some choice makes all of its statements true.
 * Throws PolicyError when the work is too much or a rule has two values.
 */
export function evaluate(rules: Rule[], name: string, input: unknown): unknown {
  return new Evaluation(rules, input).rule(name);
}

class Evaluation {
  readonly #rules: Rule[];
  readonly #input: unknown;
  readonly #known = new Map<string, unknown>();
  #steps = 0;

  constructor(rules: Rule[], input: unknown) {
    this.#rules = rules;
    this.#input = input;
  }

  rule(name: string): unknown {
    if (this.#known.has(name)) return this.#known.get(name);
    const rules = this.#rules.filter((rule) => rule.name === name);
    const value = rules.some((rule) => rule.kind === 'element') ? this.#set(rules) : this.#complete(rules);
    this.#known.set(name, value);
    return value;
  }

  #complete(rules: Rule[]): unknown {
    let found: unknown;
    for (const rule of rules.filter((one) => one.kind === 'value'))
      for (const value of this.#valuesOf(rule)) {
        if (found !== undefined && !this.#equal(found, value))
          throw new PolicyError(`rule ${rule.name} has two values`, rule.line);
        found = value;
      }
    if (found !== undefined) return found;
    const fallback = rules.find((rule) => rule.kind === 'default');
    return fallback && first(this.#expression(fallback.value, {}));
  }

  #set(rules: Rule[]): RegoSet {
    return this.#setOf(rules.flatMap((rule) => [...this.#valuesOf(rule)]));
  }

  *#valuesOf(rule: Rule): Generator<unknown> {
    for (const variables of this.#body(rule.body, 0, {}))
      for (const [value] of this.#solutions(rule.value, variables)) yield value;
  }

  *#body(body: Statement[], at: number, variables: Variables): Generator<Variables> {
    const statement = body[at];
    if (!statement) return void (yield variables);
    for (const next of this.#statement(statement, variables)) yield* this.#body(body, at + 1, next);
  }

  *#statement(statement: Statement, variables: Variables): Generator<Variables> {
    this.#step();
    switch (statement.kind) {
      case 'expression':
        for (const [value, next] of this.#solutions(statement.of, variables)) if (value !== false) yield next;
        return;
      case 'not':
        for (const value of this.#expression(statement.of, variables)) if (value !== false) return;
        return void (yield variables);
      case 'assign':
        for (const [value, next] of this.#solutions(statement.of, variables))
          yield { ...next, [statement.name]: value };
        return;
      case 'some':
        if (!statement.of) return void (yield variables);
        for (const [all, next] of this.#solutions(statement.of, variables))
          for (const entry of entriesOf(all) ?? []) yield bind(next, statement.names, entry);
        return;
      case 'every': {
        const all = entriesOf(first(this.#expression(statement.of, variables)));
        if (all?.every((entry) => first(this.#body(statement.body, 0, bind(variables, statement.names, entry)))))
          yield variables;
      }
    }
  }

  *#expression(expression: Expression, variables: Variables): Generator<unknown> {
    for (const [value] of this.#solutions(expression, variables)) yield value;
  }

  /** Yields every value that the expression can have, with the variables that this choice binds. */
  *#solutions(expression: Expression, variables: Variables): Generator<[unknown, Variables]> {
    this.#step();
    switch (expression.kind) {
      case 'value':
        return void (yield [expression.value, variables]);
      case 'name': {
        const value = this.#named(expression.name, variables);
        if (value !== undefined) yield [value, variables];
        return;
      }
      case 'index':
        for (const [of, next] of this.#solutions(expression.of, variables))
          yield* this.#index(of, expression.key, next);
        return;
      case 'array':
      case 'set':
        for (const [items, next] of this.#all(expression.items, variables))
          yield [expression.kind === 'set' ? this.#setOf(items) : items, next];
        return;
      case 'object':
        for (const [items, next] of this.#all(expression.entries.flat(), variables))
          yield [
            Object.fromEntries(expression.entries.map((_, at) => [String(items[2 * at]), items[2 * at + 1]])),
            next,
          ];
        return;
      case 'call':
        for (const [args, next] of this.#all(expression.args, variables)) {
          for (const argument of args) this.#step(1 + Math.floor(sizeOf(argument) / PARTS_A_STEP));
          const value = FUNCTIONS[expression.name]!.call(...args);
          if (value !== undefined) yield [value, next];
        }
        return;
      case 'compare':
        for (const [[left, right], next] of this.#all([expression.left, expression.right], variables)) {
          const value = this.#compare(expression.operator, left, right);
          if (value !== undefined) yield [value, next];
        }
        return;
      case 'in':
        for (const [[item, of], next] of this.#all([expression.item, expression.of], variables))
          yield [(entriesOf(of) ?? []).some(([, value]) => this.#equal(value, item)), next];
    }
  }

  *#all(expressions: Expression[], variables: Variables, at = 0): Generator<[unknown[], Variables]> {
    if (at === expressions.length) return void (yield [[], variables]);
    for (const [value, next] of this.#solutions(expressions[at]!, variables))
      for (const [rest, last] of this.#all(expressions, next, at + 1)) yield [[value, ...rest], last];
  }

  *#index(of: unknown, key: Expression, variables: Variables): Generator<[unknown, Variables]> {
    const entries = entriesOf(of) ?? [];
    if (key.kind === 'name' && this.#isUnbound(key.name, variables)) {
      for (const [name, value] of entries)
        yield [value, key.name === '_' ? variables : { ...variables, [key.name]: name }];
      return;
    }
    for (const [wanted, next] of this.#solutions(key, variables))
      for (const [name, value] of entries) if (this.#equal(name, wanted)) yield [value, next];
  }

  #named(name: string, variables: Variables): unknown {
    if (Object.hasOwn(variables, name)) return variables[name];
    return name === 'input' ? this.#input : this.rule(name);
  }

  /** Returns whether a name stands for every key. The name of a rule never does, even if the rule has no value. */
  #isUnbound(name: string, variables: Variables): boolean {
    return name !== 'input' && !Object.hasOwn(variables, name) && !this.#rules.some((rule) => rule.name === name);
  }

  #setOf(items: unknown[]): RegoSet {
    const byKey = new Map(items.map((item) => [this.#keyOf(item), item]));
    return new RegoSet([...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item));
  }

  /** Text that only equal values have in common. Like a comparison it takes a step for each part, of which values may have very many. */
  #keyOf(value: unknown): string {
    this.#step();
    if (value instanceof RegoSet) return `{${value.items.map((item) => this.#keyOf(item)).join()}}`;
    if (Array.isArray(value)) return `[${value.map((item) => this.#keyOf(item)).join()}]`;
    if (value === null || typeof value !== 'object') return JSON.stringify(value);
    const parts = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${this.#keyOf(item)}`);
    return `(${parts.sort().join()})`;
  }

  #equal(left: unknown, right: unknown): boolean {
    this.#step();
    if (left === right) return true;
    if (left === null || right === null || typeof left !== 'object' || typeof right !== 'object') return false;
    if (left instanceof RegoSet !== right instanceof RegoSet || Array.isArray(left) !== Array.isArray(right))
      return false;
    const [mine, theirs] = [left, right].map((value) => Object.entries(value instanceof RegoSet ? value.items : value));
    const other = new Map(theirs);
    return (
      mine!.length === other.size && mine!.every(([key, value]) => other.has(key) && this.#equal(value, other.get(key)))
    );
  }

  #compare(operator: Comparison, left: unknown, right: unknown): boolean | undefined {
    if (operator === '==') return this.#equal(left, right);
    if (operator === '!=') return !this.#equal(left, right);
    const comparable = (typeof left === 'number' && typeof right === 'number') || (text(left) && text(right));
    if (!comparable) return undefined;
    const [a, b] = [left as number, right as number];
    return operator === '<' ? a < b : operator === '<=' ? a <= b : operator === '>' ? a > b : a >= b;
  }

  #step(cost = 1): void {
    this.#steps += cost;
    if (this.#steps > MAX_STEPS) throw new PolicyError('the policy takes too many steps');
  }
}

/** Characters of a text, parts of a collection. */
function sizeOf(value: unknown): number {
  if (text(value) || Array.isArray(value)) return value.length;
  return value instanceof RegoSet
    ? value.items.length
    : value !== null && typeof value === 'object'
      ? Object.keys(value).length
      : 0;
}

/** Keys and values of a collection; the elements of a set are their own keys. Undefined for what has no parts. */
function entriesOf(value: unknown): [unknown, unknown][] | undefined {
  if (value instanceof RegoSet) return value.items.map((item) => [item, item]);
  if (Array.isArray(value)) return value.map((item, at) => [at, item]);
  return value !== null && typeof value === 'object' ? Object.entries(value) : undefined;
}

function bind(variables: Variables, names: string[], [key, value]: [unknown, unknown]): Variables {
  const bound = names.length === 1 ? { [names[0]!]: value } : { [names[0]!]: key, [names[1]!]: value };
  delete bound._;
  return { ...variables, ...bound };
}

const first = <T>(all: Generator<T>): T | undefined => {
  for (const one of all) return one;
  return undefined;
};
