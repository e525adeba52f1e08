import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { comment, Expression, jsonencode, quoted, writeHcl, type HclValue } from '#services/hcl/hcl.ts';

/** Texts with the characters that have a meaning in HCL, and random texts. */
const anyText = fc.oneof(
  fc.string({ unit: fc.constantFrom('$', '%', '{', '}', '"', '\\', '\n', '\r', '\t', 'a', '~', ' ', '#', '/', '*') }),
  fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed() && !text.includes('\0')),
);
/** Keys of attributes. Letters that newer editions of Unicode join are left out: Terraform counts their columns differently. */
const anyKey = fc.oneof(
  fc.constantFrom('key', 'a_longer_key', 'x', 'ключ', 'e\u0301', '漢字', '👩‍👩‍👧'),
  fc.string({ unit: 'grapheme-ascii' }),
);
const anyValue: fc.Arbitrary<HclValue> = fc.letrec<{ value: HclValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    anyText,
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(anyKey, tie('value'), { maxKeys: 4 }),
  ),
})).value;

/** Evaluates an expression with `terraform console`. */
async function evaluated(expression: string): Promise<unknown> {
  const folder = mkdtempSync(path.join(tmpdir(), 'qd-hcl-'));
  try {
    writeFileSync(path.join(folder, 'main.tf'), `locals {\n  value = ${expression}\n}\n`);
    const { stdout } = await execa('terraform', ['console'], {
      cwd: folder,
      input: 'base64encode(jsonencode(local.value))\n',
    });
    return JSON.parse(Buffer.from(JSON.parse(stdout) as string, 'base64').toString());
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

describe('text in Terraform', () => {
  test('is read as it was, whatever stands in it: nothing of it is a template, an escape or an end', async () => {
    const texts = [
      '${path.root}',
      '$${a}',
      '$$${a}',
      '%{ if true }x%{ endif }',
      '%%{a}',
      '$%{a}',
      '%${a}',
      '${',
      '$',
      '"${"',
      '\\${a}',
      '\\"',
      'a\nb\r\nc\t"d"',
      '\u0007\u001b[31m\u2028\ufeff',
      '𝕏 ü',
      ...fc.sample(anyText, { numRuns: 3000, seed: 7 }),
    ];
    // HCL keeps text in Unicode's composed form, whatever way it is written.
    const wanted = texts.map((text) => text.normalize('NFC'));
    expect(await evaluated(`[${texts.map(quoted).join(',')}]`)).toEqual(wanted);
  });

  test('of a comment stays in the comment', async () => {
    const text = comment('a\nresource "x" "y" {}\r\nb\rc\u2028d\u0085e\u0000');
    expect(text.split('\n').every((line) => line.startsWith('#'))).toBe(true);
    expect(await evaluated(`1\n${text}`)).toBe(1);
  });
});

describe('a file for Terraform', () => {
  test('is formatted as Terraform formats it, whatever it holds', async () => {
    const values = fc.sample(fc.dictionary(fc.constantFrom('a', 'name', 'long_name', 'x1'), anyValue), {
      numRuns: 400,
      seed: 11,
    });
    const text = writeHcl(
      values.map((attributes, index) => ({ type: 'resource', labels: ['x', `r${index}`], attributes })),
    );
    const { stdout } = await execa('terraform', ['fmt', '-'], { input: text, stripFinalNewline: false });
    expect(stdout).toBe(text);
  });

  test('has its signs of equality in a column where attributes follow each other, and leaves out what is undefined', () => {
    const attributes = {
      id: new Expression('var.id'),
      nothing: undefined,
      settings: jsonencode({ 'a.b': 1, c: [true] }),
      name: 'n',
      ports: [{ port: 1 }, {}],
    };
    const blocks = [{ type: 'inner', labels: [], attributes: {} }];
    expect(writeHcl([{ type: 'resource', labels: ['a', 'b'], attributes, blocks }])).toBe(`resource "a" "b" {
  id = var.id
  settings = jsonencode({
    "a.b" = 1
    c     = [true]
  })
  name = "n"
  ports = [
    {
      port = 1
    },
    {}
  ]

  inner {
  }
}
`);
  });
});
