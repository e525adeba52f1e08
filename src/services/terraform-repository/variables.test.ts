import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { isExpression, structuredNamesIn, valuesIn, variablesOf } from '#services/terraform-repository/variables.ts';

const organization = newId();
const values = (text: string) => valuesIn(organization, { name: 'a.tfvars', text });
const variables = (text: string, name = 'a.tf') => variablesOf(organization, [{ name, text }]);

describe('a file of variables tells its values', () => {
  test.each<[string, string, string]>([
    ['a string', 'x = "a b"', 'a b'],
    ['escapes', String.raw`x = "a\n\t\"\\ \u00e9 \U0001F600"`, 'a\n\t"\\ é 😀'],
    ['an escaped template', 'x = "$${a} %%{b}"', '${a} %{b}'],
    ['a number', 'x = 1.5', '1.5'],
    ['a truth value', 'x = true', 'true'],
    ['null', 'x = null', 'null'],
    ['a list over lines', 'x = [\n  "a", # first\n  "b",\n]', '["a","b"]'],
    ['an object', 'x = { a = 1, "b" = "}" }', '{"a":1,"b":"}"}'],
    ['a heredoc', 'x = <<EOT\n a\n b\nEOT\n', ' a\n b\n'],
    ['an indented heredoc', 'x = <<-EOT\n    a\n      b\n  EOT\n', 'a\n  b\n'],
    ['a comment after it', 'x = "a" // why', 'a'],
    ['a hash in a string', 'x = "#a"', '#a'],
    ['Windows line ends and a byte order mark', '\uFEFFx = "a"\r\ny = "b"\r\n', 'a'],
    ['an expression', 'x = a == b ? 1 : 2', 'a == b ? 1 : 2'],
    ['an expression with braces in strings and maps', 'x = f("}", { a = "${b["}"]}" })', 'f("}", { a = "${b["}"]}" })'],
    ['a template of several expressions', 'x = "${a}-${b}"', '${a}-${b}'],
    ['a template that ends in one', 'x = "a-${b}"', 'a-${b}'],
  ])('%s', async (_name, text, expected) => {
    expect((await values(text)).x).toBe(expected);
  });
});

test.each<[string, unknown, string]>([
  ['a string', 'a', 'a'],
  ['a string like a template', '${a}', '${a}'],
  ['a string like an escaped template', '$${a} %%{b}', '$${a} %%{b}'],
  ['a list of strings like templates', ['${a}', '%{b}'], '["$${a}","%%{b}"]'],
  ['an object', { a: 1 }, '{"a":1}'],
])('a JSON file of variables tells its values literally: %s', async (_name, value, expected) => {
  const text = JSON.stringify({ x: value });
  expect((await valuesIn(organization, { name: 'a.tfvars.json', text })).x).toBe(expected);
  const declared = await variables(JSON.stringify({ variable: { x: { default: value } } }), 'a.tf.json');
  expect(declared[0]!.default).toBe(expected);
});

test('a module tells its variables with type, default, description and what else is declared of them', async () => {
  const text = `
variable "region" {
  type        = string
  description = "Where it runs"
  default     = "eu"
  validation {
    condition     = length(var.region) > 1
    error_message = "Too short."
  }
}
variable "tags" {
  type      = map(string)
  sensitive = true
  nullable  = false
}
variable "old" {
  type    = "list"
  default = null
}
resource "terraform_data" "x" {}
`;
  expect(await variables(text)).toEqual([
    { key: 'old', sensitive: false, nullable: true, default: null, description: null, source: 'a.tf' },
    { key: 'region', sensitive: false, nullable: true, default: 'eu', description: 'Where it runs', source: 'a.tf' },
    { key: 'tags', sensitive: true, nullable: false, description: null, source: 'a.tf' },
  ]);
  expect(await structuredNamesIn(organization, [{ name: 'a.tf', text }])).toEqual(['old', 'tags']);
});

test.each([
  ['a string without an end', 'a = 1\nx = "a', 'a.tfvars: line 2: '],
  ['a list without an end', 'x = [\n1,', 'a.tfvars: line '],
  ['JSON in a file of Terraform', '{"a": 1}', 'a.tfvars: line 1: '],
  ['a value that is missing', 'x =\n', 'a.tfvars: line 1: '],
  ['lists in lists beyond measure', `x = ${'['.repeat(100_000)}`, 'a.tfvars: it is nested too deeply'],
])('a file with %s is refused with its name and line', async (_name, text, message) => {
  await expect(values(text)).rejects.toThrow(message);
  await expect(values(text)).rejects.toMatchObject({ code: 'bad_request' });
});

test.each([
  ['["a"]', true],
  ['{ a = 1 }', true],
  ['[for x in var.y : x]', true],
  ['a', false],
  ['[', false],
  ['{a}', false],
  ['["a"]\nb = 1', false],
  ['["a"]\nb {}', false],
])('%j is an expression: %s', async (text, expected) => {
  expect(await isExpression(organization, text)).toBe(expected);
});
