import fc from 'fast-check';
import { expect, test } from 'vitest';
import { printable, spelledJson } from '#kernel/printable.ts';

test.each([
  ['an escape sequence that clears the screen', 'a\u001b[2Jb', 'a\\u001b[2Jb'],
  ['one that writes the clipboard (OSC 52)', '\u001b]52;c;cm0gLXJm\u0007', '\\u001b]52;c;cm0gLXJm\\u0007'],
  ['a link that is not what it says (OSC 8)', '\u001b]8;;http://x\u001b\\y', '\\u001b]8;;http://x\\u001b\\y'],
  ['the same with one character (C1)', '\u009b31m\u009d', '\\u009b31m\\u009d'],
  ['a line that overwrites itself', 'done\rfail\b\u007f', 'done\\u000dfail\\u0008\\u007f'],
  ['text that turns around', 'a\u202ecod.exe\u2066\u200f', 'a\\u202ecod.exe\\u2066\\u200f'],
  ['ordinary text of any language', 'grüße\t日本\nعربى 👩‍👧', 'grüße\t日本\nعربى 👩‍👧'],
])('%s is printed as text', (_what, text, shown) => expect(printable(text)).toBe(shown));

test('a line of JSON stays JSON of the same form, and no text in it obeys anybody', () => {
  const text = fc.string({ unit: 'binary' });
  const odd = fc.constantFrom('\u001b[2J', '\\u001b', '\\\\u001b', '\r\n', '\u009b', '\u202e', '\\', '"', '\\r');
  fc.assert(
    fc.property(fc.array(fc.oneof(text, odd)), (parts) => {
      const line = spelledJson(JSON.stringify({ msg: parts.join('') }));
      const { msg } = JSON.parse(line) as { msg: string };
      expect(printable(msg)).toBe(msg);
      expect(printable(line)).toBe(line);
    }),
  );
});
