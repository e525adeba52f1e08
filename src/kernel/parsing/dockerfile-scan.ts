/** Instruction of a Dockerfile as builders read it: continued lines joined, comments between them left out. */
export interface Instruction {
  /** Name of the instruction, in upper case. */
  keyword: string;
  /** Words that begin with `--`, quotes and escapes resolved. */
  flags: string[];
  /** Text behind the flags. */
  rest: string;
  /** First and last line of the instruction itself, from 0; here-documents follow. */
  first: number;
  last: number;
}

export interface Scanned {
  escape: '\\' | '`';
  /** Lines of the file without their ends. */
  lines: string[];
  /** Number of comment lines at the beginning, where builders look for directives. */
  directives: number;
  /** Name of the frontend that a `# syntax=` directive asks for; null without one. */
  syntax: string | null;
  instructions: Instruction[];
}

/** Returns the error for a fault of a Dockerfile; lines count from 0. */
export const dockerfileFault = (line: number, message: string): Error =>
  new Error(`Dockerfile line ${line + 1}: ${message}`);

const KEYWORDS = new Set(
  'FROM RUN COPY ADD WORKDIR ENV ARG EXPOSE CMD ENTRYPOINT USER LABEL HEALTHCHECK SHELL STOPSIGNAL VOLUME MAINTAINER ONBUILD'.split(
    ' ',
  ),
);
const DIRECTIVE = /^#\s*([a-z][a-z0-9]*)\s*=\s*(.+?)\s*$/i;
/** Blanks of Go's `unicode.IsSpace`, by which builders trim. */
const BLANK = '[\\t\\n\\v\\f\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]';
const LEADING = new RegExp(`^${BLANK}+`);
/** Line that would reach an image, the network or the machine if a builder read it as an instruction. */
const REACHING = new RegExp(
  `^${BLANK}*(from${BLANK}|add${BLANK}|onbuild${BLANK}|(copy|run)${BLANK}.*-.*(from|mount|network|security|device))`,
  'i',
);

const trimLeft = (line: string): string => line.replace(LEADING, '');
const isComment = (line: string): boolean => trimLeft(line).startsWith('#');

/**
 * Reads a Dockerfile into its instructions. Builders of different ages disagree on some texts; those in which one of them could find an
 * instruction that another does not see are refused. Throws Error that names the line.
 */
export function scanDockerfile(text: string, hereDocuments: boolean): Scanned {
  const lines = text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .map((line) => line.replace(/\r+$/, ''));
  const head = readDirectives(lines);
  const instructions: Instruction[] = [];
  for (let at = 0; at < lines.length;) {
    if (trimLeft(lines[at]!) === '' || isComment(lines[at]!)) {
      at++;
      continue;
    }
    const { text: joined, next } = joinLines(lines, at, head.escape);
    const instruction = toInstruction(joined, at, next - 1);
    instructions.push(instruction);
    at = skipHereDocuments(lines, instruction, next, hereDocuments);
  }
  return { ...head, lines, instructions };
}

function readDirectives(lines: string[]): Pick<Scanned, 'escape' | 'directives' | 'syntax'> {
  const end = lines.findIndex((line) => !isComment(line));
  const directives = end < 0 ? lines.length : end;
  let escape = '\\';
  let syntax: string | null = null;
  for (const [at, line] of lines.slice(0, directives).entries()) {
    const [, name, value] = DIRECTIVE.exec(line.trim()) ?? [];
    if (name?.toLowerCase() === 'syntax') syntax = value!;
    if (name?.toLowerCase() !== 'escape') continue;
    if (value !== '\\' && value !== '`') throw dockerfileFault(at, `escape=${value}: must be \\ or \`.`);
    escape = value;
  }
  return { escape: escape as Scanned['escape'], directives, syntax };
}

/** Joins an instruction's lines as long as each ends with one escape character. */
function joinLines(lines: string[], first: number, escape: string): { text: string; next: number } {
  const end = escape === '\\' ? /(^|[^\\])\\[ \t]*$/ : /(^|[^`])`[ \t]*$/;
  let text = '';
  let next = first;
  let unsure = false;
  for (; next < lines.length; next++) {
    const line = lines[next]!;
    if (next > first && (isComment(line) || trimLeft(line) === '')) {
      unsure = true;
      continue;
    }
    if (next > first && unsure && REACHING.test(line))
      throw dockerfileFault(
        next,
        'follows a comment or an empty line inside of an instruction: put it right behind the line that it continues.',
      );
    unsure = false;
    if (!end.test(line)) return { text: text + line, next: next + 1 };
    text += line.replace(end, '$1');
  }
  return { text, next };
}

function toInstruction(text: string, first: number, last: number): Instruction {
  const [, word = '', behind = ''] = /^([^\t\v\f\r ]+)[\t\v\f\r ]*([^]*)$/.exec(trimLeft(text).trimEnd()) ?? [];
  const keyword = word.toUpperCase();
  if (!KEYWORDS.has(keyword)) throw dockerfileFault(first, `${word} is not an instruction.`);
  const { flags, rest } = cutFlags(behind);
  // Parsers that go by bytes find blanks inside of other characters.
  const odd = flags.find((flag) => !/^[\x20-\x7e]*$/.test(flag));
  if (odd !== undefined) throw dockerfileFault(first, `${odd}: options must be written in ASCII.`);
  return { keyword, flags, rest, first, last };
}

/** Reads the instruction that an ONBUILD holds. */
export const triggerOf = ({ rest, first, last }: Instruction): Instruction => toInstruction(rest, first, last);

/** Cuts off the words that begin with `--`; quotes and backslashes are read as BuildKit's parser reads them. */
function cutFlags(text: string): { flags: string[]; rest: string } {
  const flags: string[] = [];
  let rest = trimLeft(text);
  while (rest.startsWith('--')) {
    let word = '';
    let quote = '';
    let at = 0;
    for (; at < rest.length && (quote !== '' || !/\s/.test(rest[at]!)); at++) {
      const character = rest[at]!;
      if (character === '\\') word += rest[++at] ?? '';
      else if (character === quote) quote = '';
      else if (quote === '' && (character === '"' || character === "'")) quote = character;
      else word += character;
    }
    rest = trimLeft(rest.slice(at));
    if (word === '--') break;
    flags.push(word);
  }
  return { flags, rest };
}

/** Returns the line after the here-documents of an instruction. */
function skipHereDocuments(lines: string[], instruction: Instruction, next: number, known: boolean): number {
  const { keyword: inner, rest: text } = instruction.keyword === 'ONBUILD' ? triggerOf(instruction) : instruction;
  if (!['RUN', 'COPY', 'ADD'].includes(inner)) return next;
  let at = next;
  for (const [, dash, quote, name] of text.matchAll(/(?:^|\s)\d*<<(-?)(["']?)([A-Za-z_]\w*)\2(?=\s|$)/g)) {
    const begin = at;
    const isEnd = (line: string) => (dash ? line.replace(/^\t+/, '') : line) === name;
    while (at < lines.length && !isEnd(lines[at]!)) at++;
    // No here-document: what follows are instructions.
    if (at === lines.length) return begin;
    const reaching = lines.slice(begin, at).findIndex((line) => REACHING.test(line));
    // Inside of quotes, or where a builder knows no here-documents, these lines would be instructions.
    const others = text.replaceAll(`${quote}${name}${quote}`, '').replaceAll(/\$[A-Za-z_]\w*/g, '');
    const plain = !/["'\\`$]/.test(others);
    if (reaching >= 0 && !(plain && known))
      throw dockerfileFault(
        begin + reaching,
        known
          ? 'looks like an instruction inside of a here-document: put the quotes, $ and \\ of the line that begins it elsewhere.'
          : 'looks like an instruction inside of a here-document, which this builder does not know: Docker Engine 23 or later with BuildKit does.',
      );
    at++;
  }
  return at;
}
