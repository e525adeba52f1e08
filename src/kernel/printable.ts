/**
 * Characters that a terminal obeys or reorders instead of showing them: control characters (ANSI escapes, OSC, carriage returns that
 * overwrite a line), marks of direction (bidi) and separators of lines. Line feeds and tabs are text.
 */
const OBEYED = /(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

const spelled = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Makes foreign text safe to print: spells out characters that a terminal would obey, such as `\u001b`. */
export const printable = (text: string): string => text.replaceAll(OBEYED, spelled);

/** Makes a line of JSON whose texts are printable also after parsing: escaped control characters become their spelling. */
export const spelledJson = (line: string): string =>
  // A raw character has become an escape by now.
  printable(line).replaceAll(/\\(?:u[0-9a-fA-F]{4}|[^u])/g, (escape) => {
    if (escape === '\\r' || escape === '\\b' || escape === '\\f') return `\\${escape}`;
    const code = escape.startsWith('\\u') ? Number.parseInt(escape.slice(2), 16) : undefined;
    return code !== undefined && printable(String.fromCharCode(code)) !== String.fromCharCode(code)
      ? `\\${escape}`
      : escape;
  });
