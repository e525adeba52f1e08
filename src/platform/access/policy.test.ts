import { describe, expect, test } from 'vitest';
import { compilePolicy, PolicyError } from '#platform/access/policy.ts';
import type { Action } from '#platform/access/actions.ts';

const HEAD = 'package quarterdeck\nimport rego.v1\n';
const at = { organizationId: 'o', projectId: 'p1', mode: 'PRODUCTION' };
const allows = (rules: string, action: Action = 'service.deploy', place: typeof at = at) =>
  compilePolicy(HEAD + rules).allows(action, place);

describe('a policy allows', () => {
  test('only what one of its rules holds for', () => {
    const rules = `
      default allow := false
      allow if input.level == "READ"   # everything may be read
      allow if {
        input.action in {"service.deploy", "environment.deploy"}
        input.environment_mode != "PRODUCTION"
      }`;
    expect(allows(rules, 'project.read')).toBe(true);
    expect(allows(rules)).toBe(false);
    expect(allows(rules, 'service.deploy', { ...at, mode: 'STAGING' })).toBe(true);
    expect(allows(rules, 'service.edit', { ...at, mode: 'STAGING' })).toBe(false);
  });

  test.each([
    ['a literal in the older spelling', 'allow { input.project_id == "p1" }', true],
    ['a value with a body', 'allow = true { input.project_id == "p1" }', true],
    ['a helper rule', 'mine := ["p1", "p2"]\nallow if input.project_id in mine', true],
    ['a helper that is not there for this input', 'mine if input.project_id == "x"\nallow if not mine', true],
    ['some', 'allow if { some x in ["a", "p1"]; x == input.project_id }', true],
    ['some with keys', 'allow if { some k, v in {"p1": 1}; k == input.project_id; v > 0 }', true],
    ['a wildcard', 'ids := {"x", "p1"}\nallow if ids[_] == input.project_id', true],
    ['a key that a statement binds', 'm := {"a": "x", "p1": "y"}\nallow if { some k; m[k] == "y"; k == "p1" }', true],
    ['every', 'allow if every x in ["p1", "p1x"] { startswith(x, input.project_id) }', true],
    ['every that fails once', 'allow if every x in ["p1", "q"] { startswith(x, input.project_id) }', false],
    ['a set of reasons against', 'deny contains "no" if input.project_id == "p1"\nallow if count(deny) == 0', false],
    ['an empty set of reasons', 'deny contains "no" if input.project_id == "x"\nallow if count(deny) == 0', true],
    ['functions', 'allow if { lower(upper("Ab")) == "ab"; endswith("ab", "b"); contains("abc", "b") }', true],
    ['an equal set in another order', 'allow if { {"a", "b"} != {"b", "a"} }', false],
    ['not of a wildcard', 'allow if not ["p1", "x"][_] == input.project_id', false],
    ['what is not there', 'allow if input.nowhere.deep != "x"', false],
    ['what is not there, negated', 'allow if not input.nowhere', true],
    ['an index by a rule without a value', 'r if input.x == 1\nallow if { m := {"a": true}; m[r] }', false],
    ['a value that is not true', 'allow := "yes"', false],
    ['two values', 'a := 1 if true\na := 2 if true\nallow if a == 1', false],
    ['numbers against texts', 'allow if "2" > 1', false],
  ])('by %s', (_name, rules, expected) => {
    expect(allows(rules)).toBe(expected);
  });

  test('what its longest chain of rules and longest body allow', () => {
    const chain = Array.from({ length: 198 }, (_, at) => `r${at} if r${at + 1}`).join('\n');
    expect(allows(`${chain}\nr198 := true\nallow if r0`)).toBe(true);
    expect(allows(`allow if {\n${'input.action\n'.repeat(200)}}`)).toBe(true);
  });

  test('nothing when it takes too many steps', () => {
    const list = `[${Array.from({ length: 40 }, (_, at) => at).join(',')}]`;
    const loops = ['a', 'b', 'c', 'd', 'e'].map((name) => `some ${name} in ${list}`).join('; ');
    // The last of all combinations.
    expect(allows(`allow if { ${loops}; [a, b, c, d, e] == [39, 39, 39, 39, 39] }`)).toBe(false);
  });

  const list = (length: number) => `[${Array.from({ length }, (_, at) => at).join()}]`;
  test.each([
    [
      'a set of many pairs',
      `a contains [x, y] if { some x in ${list(70)}; some y in ${list(70)} }\nallow if count(a) > 0`,
    ],
    [
      'a set that is looked through for each of its items',
      `a contains x if { some x in ${list(900)} }\nallow if { some x in a; x in a; x == 899 }`,
    ],
    [
      'values within values',
      `a := ${list(90)}\nb := [${'a,'.repeat(90)} 1]\nc := ${list(90)}\nd := [${'c,'.repeat(90)} 1]\nallow if { x := [b, b, b]; y := [d, d, d]; x == y }`,
    ],
    [
      'a set of values within values',
      `a := ${list(90)}\nb := [${'a,'.repeat(90)} 1]\nc := {${'b,'.repeat(90)} 1}\nallow if count(c) == 2`,
    ],
    [
      'a list that is compared with itself',
      `allow if { some x in ${list(1000)}; some y in ${list(1000)}; [x, y] == [y, x]; x > 998 }`,
    ],
  ])('nothing when it makes %s', (_what, rules) => {
    expect(allows(rules)).toBe(false);
  });

  test.each([
    ['sets by what is in them', 'allow if { {1, 2, {"a": 1, "b": [2]}} == {{"b": [2], "a": 1}, 2, 1, 1} }', true],
    ['lists by their order', 'allow if { [1, 2] == [2, 1] }', false],
    ['a set and a list', 'allow if { {1, 2} == [1, 2] }', false],
    ['objects by their keys', 'allow if { {"a": 1} == {"b": 1} }', false],
    ['nothing with something', 'allow if { null == {} }', false],
    ['text and number', 'allow if { {"1"} == {1} }', false],
  ])('what compares %s', (_what, rules, expected) => expect(allows(rules)).toBe(expected));
});

describe('a policy is refused, with its line,', () => {
  test.each([
    ['without allow', 'deny := true', 'allow'],
    ['with an unknown name', 'allow if action == "x"', 'line 3: action is not defined'],
    ['with an unknown function', 'allow if http.send({"url": "x"})', 'dot'],
    ['with an unknown plain function', 'allow if constructor("x")', 'constructor'],
    ['with a wrong number of arguments', 'allow if lower()', 'takes 1'],
    ['with data', 'allow if data.x', 'data'],
    ['with an import', 'import data.x\nallow := true', 'import'],
    ['with a function of its own', 'f(x) := x\nallow := true', 'functions'],
    ['with else', 'allow if false else := true', 'else'],
    ['with recursion', 'a if b\nb if a\nallow if a', 'itself'],
    ['with an unfinished body', 'allow if {', '"the end"'],
    ['with an unfinished string', 'allow if input.action == "x', '"""'],
    ['with an empty body', 'allow if { }', 'empty'],
    ['nested beyond measure', `allow if ${'('.repeat(5000)}true${')'.repeat(5000)}`, 'nested'],
    ['with more rules than anybody writes', `${'a := 1\n'.repeat(300)}allow := true`, 'at most 200 rules'],
    ['longer than allowed', `# ${'x'.repeat(20_000)}\nallow := true`, 'characters'],
  ])('%s', (_name, rules, message) => {
    expect(() => compilePolicy(HEAD + rules)).toThrow(PolicyError);
    expect(() => compilePolicy(HEAD + rules)).toThrow(message);
  });

  test('without a package', () => expect(() => compilePolicy('allow := true')).toThrow('line 1'));
});
