import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMask } from '#runtimes/tools/secrets-mask.ts';

const text = (letters: string, maxLength: number, minLength = 0) =>
  fc.string({ unit: fc.constantFrom(...letters), minLength, maxLength });
/** Few letters, so that secrets overlap, repeat and hold each other. */
const secrets = fc.array(text('abc\n', 8), { maxLength: 4 });
const pieces = fc.array(text('abc ', 12));

const maskAll = (masked: readonly string[], parts: readonly string[]): string => {
  const mask = createMask(masked);
  return parts.map((part) => mask.push(part)).join('') + mask.flush();
};

/** What a mask should show, the slow way: every character of every occurrence is marked. */
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

test('any text without a secret in it passes unchanged, and none waits longer than the longest secret', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' })), (parts) => {
      const mask = createMask(['a secret that does not occur']);
      let given = 0;
      let shown = '';
      for (const part of parts) {
        given += part.length;
        shown += mask.push(part);
        expect(given - shown.length).toBeLessThan('a secret that does not occur'.length);
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
