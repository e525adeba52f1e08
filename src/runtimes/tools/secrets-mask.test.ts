import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMask } from '#runtimes/tools/secrets-mask.ts';

const secret = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 4, maxLength: 8 });

test('no secret of four characters or more is shown, wherever the text is cut', () => {
  fc.assert(
    fc.property(
      fc.array(secret, { maxLength: 4 }),
      fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c', ' '), maxLength: 12 })),
      (secrets, pieces) => {
        const mask = createMask(secrets);
        const shown = pieces.map((piece) => mask.push(piece)).join('') + mask.flush();
        for (const one of secrets) expect(shown).not.toContain(one);
        if (!secrets.some((one) => pieces.join('').includes(one))) expect(shown).toBe(pieces.join(''));
      },
    ),
  );
});

test('each line of a secret with several lines is masked, and short ones are left alone', () => {
  const mask = createMask(['first line\nsecond line', 'abc']);
  expect(mask.push('a: second line, abc') + mask.flush()).toBe('a: ***, abc');
});
