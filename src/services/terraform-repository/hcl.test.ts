import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HclError, parseHcl, plainValue } from '#services/terraform-repository/hcl.ts';

const attributes = (text: string) =>
  Object.fromEntries(parseHcl(text).attributes.map(({ name, expression }) => [name, plainValue(expression)]));

describe('values are read', () => {
  test.each<[string, string, string | null]>([
    ['a string', 'x = "a b"', 'a b'],
    ['escapes', String.raw`x = "a\n\t\"\\ \u00e9 \U0001F600"`, 'a\n\t"\\ é 😀'],
    ['an escaped template', 'x = "$${a} %%{b}"', '${a} %{b}'],
    ['a template, as it is written', 'x = "${var.a}-b"', '"${var.a}-b"'],
    ['a template with quotes inside', 'x = "${lookup(m, "k}", "d")}"', '"${lookup(m, "k}", "d")}"'],
    ['a number', 'x = 1.5', '1.5'],
    ['a truth value', 'x = true', 'true'],
    ['null', 'x = null', null],
    ['a list over lines', 'x = [\n  "a", # first\n  "b",\n]', '[\n  "a", \n  "b",\n]'],
    ['an object', 'x = { a = 1, "b" = "}" }', '{ a = 1, "b" = "}" }'],
    ['a heredoc', 'x = <<EOT\n a\n b\nEOT\n', ' a\n b\n'],
    ['an indented heredoc', 'x = <<-EOT\n    a\n      b\n  EOT\n', 'a\n  b\n'],
    ['an empty heredoc', 'x = <<EOT\nEOT\n', ''],
    ['a heredoc that mentions its mark', 'x = <<EOT\nno EOT here\nEOT\n', 'no EOT here\n'],
    ['a comment after it', 'x = "a" // why', 'a'],
    ['a hash in a string', 'x = "#a"', '#a'],
    ['the last line without an end', 'y = 1\nx = "a"', 'a'],
    ['Windows line ends and a byte order mark', '\uFEFFx = "a"\r\ny = "b"\r\n', 'a'],
    ['a comparison', 'x = a == b ? 1 : 2', 'a == b ? 1 : 2'],
  ])('%s', (_name, text, expected) => {
    expect(attributes(text).x).toBe(expected);
  });

  test('of nothing but comments, there are none', () => {
    expect(parseHcl('# a\n// b\n/* c\n*/\n')).toEqual({ attributes: [], blocks: [] });
  });

  test('in blocks with labels, nested ones too', () => {
    const { blocks } = parseHcl(
      'variable "a" {\n type = string\n validation {\n  condition = length(var.a) > 1\n }\n}\nterraform {}',
    );
    expect(blocks).toMatchObject([
      { type: 'variable', labels: ['a'], body: { attributes: [{ name: 'type' }], blocks: [{ type: 'validation' }] } },
      { type: 'terraform', labels: [] },
    ]);
  });
});

describe('a file is refused with its line', () => {
  test.each([
    ['a string without an end', 'a = 1\nx = "a', 'line 2'],
    ['a list without an end', 'x = [\n1,', '"]" is missing'],
    ['brackets that cross', 'x = [ ( ] )', 'not understood'],
    ['a block without an end', 'variable "a" {', 'ends too early'],
    ['a heredoc without an end', 'x = <<EOT\na\n', 'heredoc EOT'],
    ['a value that is missing', 'x =\n', 'a value is missing'],
    ['what is no HCL', '{"a": 1}', 'line 1'],
    ['nesting beyond measure', 'a {'.repeat(20_000), 'too deeply'],
    ['templates nested beyond measure', `x = ${'"${'.repeat(20_000)}`, 'too deeply'],
  ])('for %s', (_name, text, message) => {
    expect(() => parseHcl(text)).toThrow(HclError);
    expect(() => parseHcl(text)).toThrow(message);
  });
});

test('any text is either read or refused, never anything else', () => {
  const parts = fc.constantFrom(
    'a',
    ' ',
    '\n',
    '=',
    '"',
    '${',
    '}',
    '{',
    '[',
    ']',
    '<<E\n',
    'E',
    '#',
    '/*',
    '*/',
    '\\',
    'é',
    '1',
    '%{',
  );
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 40 }), (pieces) => {
      try {
        for (const { expression } of parseHcl(pieces.join('')).attributes) plainValue(expression);
      } catch (error) {
        expect(error).toBeInstanceOf(HclError);
      }
    }),
    { numRuns: 3000 },
  );
});

test('every string comes back as it was written', () => {
  const quoted = (value: string) =>
    `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('${', '$${').replaceAll('%{', '%%{')}"`;
  fc.assert(
    fc.property(fc.string(), (value) => {
      fc.pre(!/[$%]$|\$\$\{|%%\{/.test(value));
      expect(attributes(`x = ${quoted(value)}\n`).x).toBe(value);
    }),
  );
});
