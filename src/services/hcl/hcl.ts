/** Expression that is written unchanged: a reference such as `var.token`. */
export class Expression {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Value in Terraform's language. Undefined attributes are left out. */
export type HclValue =
  | string
  | number
  | boolean
  | null
  | Expression
  | readonly HclValue[]
  | { readonly [key: string]: HclValue | undefined };

/** A block: `resource "qovery_application" "app" { … }`. */
export interface HclBlock {
  type: string;
  labels: string[];
  attributes: { readonly [key: string]: HclValue | undefined };
  blocks?: HclBlock[];
}

const ESCAPES: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '"': '\\"', '\\': '\\\\' };

/**
 * Writes a string as a quoted template that contains no template. `${` and `%{` begin one unless their sign is doubled. Signs that the text
 * itself doubles would be read as such an escape, so that they are written as `\u` escapes.
 */
export const quoted = (text: string): string =>
  `"${text
    .replaceAll(/[\n\r\t"\\]/g, (character) => ESCAPES[character]!)
    .replaceAll(/[\p{Cc}\u2028\u2029\ufeff]/gu, (character) => byNumber(character))
    .replaceAll(/(\$+|%+)\{/g, (match) =>
      match.length === 2 ? `${match[0]}${match}` : `${byNumber(match[0]!).repeat(match.length - 1)}{`,
    )}"`;

const byNumber = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** A call of `jsonencode`, which keeps JSON readable. */
export const jsonencode = (value: HclValue): Expression => new Expression(`jsonencode(${expression(value, '')})`);

/** A comment of any text. */
export const comment = (text: string): string =>
  text
    .split(/\r\n|[\n\r\u2028\u2029\u0085]/)
    .map((line) => `# ${line.replaceAll(/\p{Cc}/gu, ' ')}`.trimEnd())
    .join('\n');

/** Blocks as a file, formatted as `terraform fmt` does it. */
export const writeHcl = (blocks: HclBlock[]): string => blocks.map((block) => `${writeBlock(block, '')}\n`).join('\n');

function writeBlock({ type, labels, attributes, blocks = [] }: HclBlock, indent: string): string {
  const head = [type, ...labels.map(quoted)].join(' ');
  const inner = `${indent}  `;
  const lines = [writeAttributes(attributes, inner), ...blocks.map((block) => writeBlock(block, inner))];
  const body = lines.filter((line) => line !== '').join('\n\n');
  return body === '' ? `${indent}${head} {\n${indent}}` : `${indent}${head} {\n${body}\n${indent}}`;
}

/** Writes attributes below one another. Equal signs of consecutive single-line attributes stand in one column. */
function writeAttributes(attributes: { readonly [key: string]: HclValue | undefined }, indent: string): string {
  const entries = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ({ key: keyOf(key), text: expression(value!, indent) }));
  const lines: string[] = [];
  for (let begin = 0; begin < entries.length;) {
    let end = begin;
    while (end < entries.length && !entries[end]!.text.includes('\n')) end++;
    const run = entries.slice(begin, Math.max(end, begin + 1));
    const width = Math.max(...run.map(({ key }) => widthOf(key)));
    for (const { key, text } of run) lines.push(`${indent}${key}${' '.repeat(width - widthOf(key))} = ${text}`);
    begin += run.length;
  }
  return lines.join('\n');
}

/** Segmenter for column widths: a grapheme, which people see as one character, is one column wide. */
const GRAPHEMES = new Intl.Segmenter();
const widthOf = (key: string): number => [...GRAPHEMES.segment(key)].length;

const keyOf = (key: string): string => (/^[A-Za-z_][\w-]*$/.test(key) ? key : quoted(key));

function expression(value: HclValue, indent: string): string {
  if (value === null) return 'null';
  if (value instanceof Expression) return value.text.replaceAll('\n', `\n${indent}`);
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const inner = `${indent}  `;
  if (isList(value)) {
    if (value.every((item) => typeof item !== 'object' || item === null || item instanceof Expression))
      return `[${value.map((item) => expression(item, indent)).join(', ')}]`;
    return `[\n${value.map((item) => `${inner}${expression(item, inner)}`).join(',\n')}\n${indent}]`;
  }
  const body = writeAttributes(value, inner);
  return body === '' ? '{}' : `{\n${body}\n${indent}}`;
}

const isList = (value: HclValue): value is readonly HclValue[] => Array.isArray(value);
