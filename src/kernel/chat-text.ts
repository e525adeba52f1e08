import { printable } from '#kernel/printable.ts';

/** Invisible character behind which chat clients recognize neither mentions nor links. */
const BREAK = '\u2060';

/** Returns a text with the three characters escaped that Slack reads as markup of links and mentions. */
const escapeSlack = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Returns a text that Slack shows as it is: without bold, italic, struck or code text too. */
export const escapeSlackMarkup = (text: string): string =>
  escapeSlack(text).replaceAll(/[*_~`]/g, (one) => `${BREAK}${one}`);

/**
 * Returns a text that people chose on one line: without mentions or links that clients make by themselves, and with marks of direction, which
 * would reorder the line, spelled out.
 */
export const onOneLine = (text: string): string =>
  printable(text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')).replaceAll(
    /@|:(?=\/)|(?<=\S)\.(?=\S)/g,
    (one) => `${one}${BREAK}`,
  );

/** Returns at most so many characters of a text, never half of one. */
export function cut(text: string, most: number): string {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : text;
}

/** Returns the lines of a text that fit into so many characters; `…` stands for those that do not. The first line is cut if it is too long. */
export function cutLines(text: string, most: number): string {
  if (text.length <= most) return text;
  const [first = '', ...others] = text.split('\n');
  let left = most - '\n…'.length;
  // Half of an escape or of a character would be shown as such.
  const kept = [first.length > left ? first.slice(0, left).replace(/(?:&[a-z]*|\\|[\uD800-\uDBFF])$/, '') : first];
  left -= kept[0]!.length;
  for (const line of others) {
    if (line.length >= left) continue;
    kept.push(line);
    left -= line.length + 1;
  }
  return `${kept.join('\n')}\n…`;
}
