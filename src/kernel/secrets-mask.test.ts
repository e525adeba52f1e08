import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMask, maskOf } from '#kernel/secrets-mask.ts';
import { leastBlockedBy, LONGEST_BLOCK_MS } from '#test/harness/blocking.ts';

const text = (letters: string, maxLength: number, minLength = 0) =>
  fc.string({ unit: fc.constantFrom(...letters), minLength, maxLength });
/** Few letters, so that secrets overlap, repeat and hold each other. */
const secrets = fc.array(text('abc\n', 8), { maxLength: 4 });
const pieces = fc.array(text('abc ', 12));

const maskAll = (masked: readonly string[], parts: readonly string[]): string => {
  const mask = createMask(masked);
  return parts.map((part) => mask.push(part)).join('') + mask.flush();
};

/** Computes the expected mask the slow way: marks every character of every occurrence. */
function model(masked: readonly string[], whole: string): string {
  const forms = masked.flatMap((secret) => [secret, ...secret.split('\n')]).filter((form) => form.length >= 4);
  const isCovered = [...whole].map((_, at) =>
    forms.some((form) => [...form].some((_letter, before) => at >= before && whole.startsWith(form, at - before))),
  );
  return [...whole].map((letter, at) => (!isCovered[at] ? letter : isCovered[at - 1] ? '' : '***')).join('');
}

test('exactly the secrets of four characters or more are covered, overlapping ones whole', () => {
  fc.assert(
    fc.property(secrets, pieces, (masked, parts) => {
      expect(maskAll(masked, parts)).toBe(model(masked, parts.join('')));
    }),
    { numRuns: 10_000 },
  );
});

test('how the text is cut makes no difference', () => {
  fc.assert(
    fc.property(secrets, pieces, (masked, parts) => {
      expect(maskAll(masked, parts)).toBe(maskAll(masked, [parts.join('')]));
    }),
    { numRuns: 10_000 },
  );
});

test('any text without a secret in it passes unchanged, and none waits longer than the longest form of a secret', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' })), (parts) => {
      const mask = createMask(['a secret that does not occur']);
      let given = 0;
      let shown = '';
      for (const part of parts) {
        given += part.length;
        shown += mask.push(part);
        expect(given - shown.length).toBeLessThan(128);
      }
      expect(shown + mask.flush()).toBe(parts.join(''));
    }),
  );
});

test('each line of a secret with several lines is masked, and short ones are left alone', () => {
  const mask = createMask(['first line\r\n  second line\nabc', 'abc']);
  expect(mask.push('a: second line, first line, abc') + mask.flush()).toBe('a: ***, ***, abc');
});

test('a secret is masked in the form that it has in JSON', () => {
  const secret = 'pass"word\\';
  expect(maskAll([secret], [JSON.stringify({ secret })])).toBe('{"secret":"***"}');
});

test('a mask can be used again after its end', () => {
  const mask = createMask(['secret']);
  expect(mask.push('a secr') + mask.flush()).toBe('a secr');
  expect(mask.push('et secret') + mask.flush()).toBe('et ***');
});

test('a secret that repeats without end needs no memory', () => {
  const mask = createMask(['aaaa']);
  let shown = '';
  for (let n = 0; n < 1000; n++) shown += mask.push('aaaaaaaaaa');
  expect(shown).toBe('***');
  expect(mask.push(' end') + mask.flush()).toBe(' end');
});

test('without secrets nothing waits', () => {
  expect(createMask([]).push('text')).toBe('text');
});

const SECRET = 'pä"ss word/+?&=\\end-of-it';
const bytes = Buffer.from(SECRET);

test.each([
  ['base64', bytes.toString('base64').replace(/=+$/, '')],
  ['base64 for URLs', bytes.toString('base64url')],
  ['hexadecimal digits', bytes.toString('hex')],
  ['upper-case hexadecimal digits', bytes.toString('hex').toUpperCase()],
  ['a URL', encodeURIComponent(SECRET)],
  ['a URL with lower-case escapes', encodeURIComponent(SECRET).replaceAll(/%../g, (one) => one.toLowerCase())],
  ['a form', encodeURIComponent(SECRET).replaceAll('%20', '+')],
  ['JSON', JSON.stringify(SECRET).slice(1, -1)],
])('a secret is masked in the form that it has in %s', (_name, form) => {
  expect(maskAll([SECRET], [`before ${form} after`])).toBe('before *** after');
});

test.each([1, 2, 3, 4])('a secret is masked in base64 of a text in which it stands behind %i bytes', (count) => {
  const encoded = Buffer.from(`${'x'.repeat(count)}${SECRET}tail`).toString('base64');
  const shown = maskAll([SECRET], [encoded]);
  expect(shown).toContain('***');
  // At most a character beside what came before it and after it is left.
  expect(shown.replace('***', '').length).toBeLessThanOrEqual(Math.ceil((count + 4) / 3) * 4 + 4);
});

test.each([76, 64])('a long secret is masked in base64 with lines of %i characters', (width) => {
  const secret = Array.from({ length: 40 }, (_, n) => `part-${n * 7919}`).join('/');
  const lines = Buffer.from(secret)
    .toString('base64')
    .match(new RegExp(`.{1,${width}}`, 'g'))!;
  // What is shorter than eight characters at the end is shown.
  for (const line of lines.filter((one) => one.replaceAll('=', '').length >= 8))
    expect(maskAll([secret], [line])).toMatch(/^\*\*\*=*$/);
});

test('a short secret is masked as it is, and its encodings, which occur by chance, are shown', () => {
  expect(maskAll(['abcd'], ['abcd 61626364'])).toBe('*** 61626364');
});

test('half a surrogate pair in a secret is masked like any other character', () => {
  expect(maskAll(['secret \ud800 of 8'], ['a secret \ud800 of 8 b'])).toBe('a *** b');
});

/** As long as values of variables may be. */
const LONGEST_VALUE = 65_536;
const LONGEST_LINE = 16_384;

test.each([
  ['lines that begin alike', Array.from({ length: 7_000 }, (_, n) => `aaaa${n}`).join('\n')],
  ['one line of one letter', 'a'.repeat(LONGEST_VALUE)],
  ['lines of different length', Array.from({ length: 350 }, (_, n) => 'a'.repeat(n)).join('\n')],
])('the longest line of a log is searched in less than 50 ms for a secret of %s', async (_name, secret) => {
  expect(secret.length).toBeLessThanOrEqual(LONGEST_VALUE);
  const mask = maskOf([secret]);
  const line = 'a'.repeat(LONGEST_LINE);
  expect(await leastBlockedBy(async () => void mask(line))).toBeLessThan(LONGEST_BLOCK_MS);
});
