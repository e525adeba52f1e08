/** Tokens of a JSON text from a position on. Blanks are JSON's own. */
const TOKEN =
  /[ \t\n\r]*(?:([{}[\],:])|"(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/uy;

/**
 * Line and column, from 1, of the first place where a text stops being JSON; undefined where it is JSON. `JSON.parse` does not always say where,
 * and quotes what stands there, which may be a secret.
 */
export function findJsonError(text: string): { line: number; column: number } | undefined {
  const at = scan(text);
  if (at === undefined) return undefined;
  const lines = text.slice(0, at).split('\n');
  return { line: lines.length, column: lines.at(-1)!.length + 1 };
}

type Wanted = 'value' | 'value or ]' | 'key' | 'key or }' | ':' | ', or ]' | ', or }' | 'end';

/** Returns the position of the first error; undefined for valid JSON. */
function scan(text: string): number | undefined {
  const open: ('{' | '[')[] = [];
  const afterValue = (): Wanted => (open.length === 0 ? 'end' : open.at(-1) === '{' ? ', or }' : ', or ]');
  let wanted: Wanted = 'value';
  for (let position = 0; ;) {
    const blanks = /[ \t\n\r]*/y;
    blanks.lastIndex = position;
    const start = position + blanks.exec(text)![0].length;
    if (start === text.length) return wanted === 'end' ? undefined : start;
    TOKEN.lastIndex = start;
    const match = TOKEN.exec(text);
    if (!match || wanted === 'end') return start;
    const [token, mark] = match;
    const isClosing = (mark === '}' && /\}$/.test(wanted)) || (mark === ']' && /\]$/.test(wanted));
    if (isClosing) {
      open.pop();
      wanted = afterValue();
    } else if (wanted.startsWith('value')) {
      if (mark === '{' || mark === '[') open.push(mark);
      else if (mark) return start;
      wanted = mark === '{' ? 'key or }' : mark === '[' ? 'value or ]' : afterValue();
    } else if (wanted.startsWith('key')) {
      if (!token.startsWith('"')) return start;
      wanted = ':';
    } else {
      if (mark !== wanted[0]) return start;
      wanted = mark === ':' ? 'value' : open.at(-1) === '{' ? 'key' : 'value';
    }
    position = start + token.length;
  }
}
