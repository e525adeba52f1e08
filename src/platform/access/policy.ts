import { LruMap } from 'toad-cache';
import { ACTIONS, type Action } from '#platform/access/actions.ts';
import type { Location, Policy } from '#platform/access/principal.ts';
import { check } from '#platform/access/rego/check.ts';
import { evaluate } from '#platform/access/rego/evaluate.ts';
import { PolicyError } from '#platform/access/rego/lex.ts';
import { parse } from '#platform/access/rego/parse.ts';
import type { Rule } from '#platform/access/rego/syntax.ts';

export { PolicyError } from '#platform/access/rego/lex.ts';

/** Builds the `input` of a policy. */
const inputOf = (action: Action, at: Location) => ({
  action,
  level: ACTIONS[action],
  organization_id: at.organizationId,
  project_id: at.projectId,
  environment_id: at.environmentId,
  environment_mode: at.mode,
  cluster_id: at.clusterId,
});

/** Limit of a policy, in characters. */
export const MAX_POLICY_LENGTH = 16_384;

const compiled = new LruMap<Policy>(1000);

/**
 * Reads a policy written in Rego, the language of Open Policy Agent: a package, rules with `if`, `default`, `contains`, `some`,
 * `every`, `not`, `in`, comparisons, and the functions of rego/evaluate.ts. What Rego has besides (functions of one's own,
 * comprehensions, arithmetic, `else`, `with`, `data`) is refused. The rule `allow` decides: only `true` allows.
 * Throws PolicyError that names the line.
 */
export function compilePolicy(text: string): Policy {
  const known = compiled.get(text);
  if (known) return known;
  if (text.length > MAX_POLICY_LENGTH) throw new PolicyError(`at most ${MAX_POLICY_LENGTH} characters are allowed`);
  const rules = read(text);
  if (!rules.some((rule) => rule.name === 'allow'))
    throw new PolicyError('the rule `allow`, which decides, is missing');
  const policy: Policy = { allows: remembering(rules) };
  compiled.set(text, policy);
  return policy;
}

function read(text: string): Rule[] {
  try {
    const rules = parse(text);
    check(rules);
    return rules;
  } catch (error) {
    if (error instanceof RangeError) throw new PolicyError('it is nested too deeply or has lists that are too long');
    throw error;
  }
}

/** Decisions that are remembered of each policy: lists and streams ask about each of their rows. */
const DECISIONS = 1000;

/** Returns the policy as a function that decides each input once: decisions depend on the input only. */
function remembering(rules: Rule[]): Policy['allows'] {
  const decisions = new LruMap<boolean>(DECISIONS);
  return (action, at) => {
    const input = JSON.stringify(inputOf(action, at));
    const known = decisions.get(input);
    if (known !== undefined) return known;
    const decision = decide(rules, input);
    decisions.set(input, decision);
    return decision;
  };
}

/** Decides an input. A policy that does not end or contradicts itself allows nothing: doubt is a no. */
function decide(rules: Rule[], input: string): boolean {
  try {
    return evaluate(rules, 'allow', JSON.parse(input)) === true;
  } catch (error) {
    // A RangeError: it went deeper than there is room for.
    if (error instanceof PolicyError || error instanceof RangeError) return false;
    throw error;
  }
}
