import { FUNCTIONS } from '#platform/access/rego/evaluate.ts';
import { PolicyError } from '#platform/access/rego/lex.ts';
import type { Expression, Rule, Statement } from '#platform/access/rego/syntax.ts';

/** Longest body: its statements are solved by recursion. */
const MAX_STATEMENTS = 200;
/** Limit of rules: each may need the next one. */
const MAX_RULES = 200;

/** Refuses rules that could only surprise: unknown names, unknown functions, rules that need themselves. Throws PolicyError. */
export function check(rules: Rule[]): void {
  if (rules.length > MAX_RULES) throw new PolicyError(`a policy has at most ${MAX_RULES} rules`);
  const uses = new Map<string, Set<string>>();
  const names = new Set(rules.map((rule) => rule.name));
  for (const rule of rules) {
    if (rule.name === 'input' || rule.name === 'data')
      throw new PolicyError(`a rule cannot be named ${rule.name}`, rule.line);
    const declared = new Set<string>();
    const used = uses.get(rule.name) ?? new Set<string>();
    uses.set(rule.name, used);
    checkBody(rule.body, declared, names, used);
    checkExpression(rule.value, declared, names, used);
  }
  for (const rule of rules)
    if (reaches(rule.name, rule.name, uses, new Set()))
      throw new PolicyError(`rule ${rule.name} needs itself`, rule.line);
}

function checkBody(body: Statement[], declared: Set<string>, rules: Set<string>, used: Set<string>): void {
  if (body.length > MAX_STATEMENTS) throw new PolicyError(`a body has at most ${MAX_STATEMENTS} statements`);
  for (const statement of body) {
    if (statement.of) checkExpression(statement.of, declared, rules, used);
    if (statement.kind === 'assign') declared.add(statement.name);
    if (statement.kind === 'some' || statement.kind === 'every') {
      if (statement.names.length > 2) throw new PolicyError(`${statement.kind}: must have one or two names`);
      for (const name of statement.names) declared.add(name);
    }
    if (statement.kind === 'every') checkBody(statement.body, declared, rules, used);
  }
}

function checkExpression(expression: Expression, declared: Set<string>, rules: Set<string>, used: Set<string>): void {
  const inside = (part: Expression) => checkExpression(part, declared, rules, used);
  switch (expression.kind) {
    case 'value':
      return;
    case 'name':
      if (rules.has(expression.name)) used.add(expression.name);
      else if (expression.name !== 'input' && !declared.has(expression.name))
        throw new PolicyError(`${expression.name} is not defined`, expression.line);
      return;
    case 'index':
      inside(expression.of);
      // A name that is new here stands for every key.
      if (expression.key.kind === 'name' && !rules.has(expression.key.name)) declared.add(expression.key.name);
      return inside(expression.key);
    case 'array':
    case 'set':
      return expression.items.forEach(inside);
    case 'object':
      return expression.entries.flat().forEach(inside);
    case 'call': {
      const known = Object.hasOwn(FUNCTIONS, expression.name) ? FUNCTIONS[expression.name] : undefined;
      if (!known)
        throw new PolicyError(
          `the function ${expression.name} is not supported: there are ${Object.keys(FUNCTIONS).join(', ')}`,
        );
      if (known.arity !== expression.args.length)
        throw new PolicyError(`${expression.name} takes ${known.arity} arguments`);
      return expression.args.forEach(inside);
    }
    case 'compare':
      inside(expression.left);
      return inside(expression.right);
    case 'in':
      inside(expression.item);
      return inside(expression.of);
  }
}

function reaches(from: string, wanted: string, uses: Map<string, Set<string>>, seen: Set<string>): boolean {
  for (const next of uses.get(from) ?? []) {
    if (next === wanted) return true;
    if (seen.has(next)) continue;
    seen.add(next);
    if (reaches(next, wanted, uses, seen)) return true;
  }
  return false;
}
