/** What is wrong with a file, with the line where it is. */
export class HclError extends Error {
  constructor(message: string, line: number) {
    super(`line ${line}: ${message}`);
    this.name = 'HclError';
  }
}

/** A body of HCL: attributes in their order, with the text of their expressions, and blocks with their labels. */
export interface Body {
  attributes: { name: string; expression: string }[];
  blocks: { type: string; labels: string[]; body: Body }[];
}

const CLOSING: Record<string, string> = { '(': ')', '[': ']', '{': '}' };
/** Deeper nesting than anybody writes; recursion ends here instead of on the stack. */
const MAX_DEPTH = 100;

/**
 * Reads the structure of a file in Terraform's language: blocks, labels, attributes. Expressions are not evaluated, only
 * delimited, so that any is understood. Throws HclError.
 */
export const parseHcl = (text: string): Body =>
  new Scanner(text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n')).file();

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  file(): Body {
    const body = this.#body(0);
    if (this.#at < this.#text.length) throw this.#unexpected();
    return body;
  }

  #body(depth: number): Body {
    if (depth > MAX_DEPTH) throw this.#error('nested too deeply');
    const body: Body = { attributes: [], blocks: [] };
    for (;;) {
      this.#skip(true);
      const name = this.#take(/[\p{ID_Start}_][\p{ID_Continue}-]*/uy);
      if (name === undefined) return body;
      this.#skip(false);
      if (this.#text[this.#at] === '=' && this.#text[this.#at + 1] !== '=') {
        this.#at++;
        this.#skip(false);
        body.attributes.push({ name, expression: this.#expression() });
      } else body.blocks.push(this.#block(name, depth));
    }
  }

  #block(type: string, depth: number): Body['blocks'][number] {
    const labels: string[] = [];
    for (;;) {
      this.#skip(false);
      const bare = this.#take(/[\p{ID_Start}_][\p{ID_Continue}-]*/uy);
      const label = bare ?? this.#take(/"(?:[^"\\\n]|\\.)*"/y);
      if (label === undefined) break;
      labels.push(bare ?? unquote(label));
    }
    if (this.#text[this.#at] !== '{') throw this.#unexpected();
    this.#at++;
    const body = this.#body(depth + 1);
    if (this.#text[this.#at] !== '}') throw this.#unexpected();
    this.#at++;
    return { type, labels, body };
  }

  /** Text up to the end of the line, or of the lines that brackets, templates and heredocs span, without comments. */
  #expression(): string {
    const open: string[] = [];
    let text = '';
    while (this.#at < this.#text.length) {
      const heredoc = this.#heredoc();
      if (heredoc !== undefined) {
        text += heredoc;
        continue;
      }
      const char = this.#text[this.#at]!;
      if (open.length === 0 && (char === '\n' || char === '}')) break;
      if (this.#comment()) continue;
      if (char === '"') text += this.#string(0);
      else {
        if (CLOSING[char]) open.push(CLOSING[char]);
        else if (char === ')' || char === ']' || char === '}') this.#close(open, char);
        text += char;
        this.#at++;
      }
    }
    if (open.length > 0) throw this.#error(`"${open.at(-1)}" is missing`);
    if (text.trim() === '') throw this.#error('a value is missing');
    return text.trim();
  }

  #close(open: string[], char: string): void {
    if (open.pop() !== char) throw this.#unexpected();
  }

  /** A quoted template with its quotes. A template inside `${…}` may hold quotes of its own. */
  #string(depth: number): string {
    if (depth > MAX_DEPTH) throw this.#error('nested too deeply');
    const from = this.#at++;
    for (;;) {
      const char = this.#text[this.#at];
      if (char === undefined || char === '\n') throw this.#error('a string does not end');
      if (char === '\\') this.#at += 2;
      else if (this.#text.startsWith('$${', this.#at) || this.#text.startsWith('%%{', this.#at)) this.#at += 3;
      else if (this.#text.startsWith('${', this.#at) || this.#text.startsWith('%{', this.#at)) this.#template(depth);
      else {
        this.#at++;
        if (char === '"') return this.#text.slice(from, this.#at);
      }
    }
  }

  #template(depth: number): void {
    this.#at += 2;
    for (let open = 1; open > 0;) {
      const char = this.#text[this.#at];
      if (char === undefined) throw this.#error('a template does not end');
      if (char === '"') {
        this.#string(depth + 1);
        continue;
      }
      if (char === '{') open++;
      if (char === '}') open--;
      this.#at++;
    }
  }

  /** A heredoc with its marks, whose end stands on a line of its own. */
  #heredoc(): string | undefined {
    const opening = this.#match(/<<-?([\p{ID_Start}_][\p{ID_Continue}-]*)\n/uy);
    if (!opening) return undefined;
    const ending = new RegExp(`^[ \\t]*${opening[1]}[ \\t]*$`, 'mg');
    ending.lastIndex = this.#at + opening[0].length;
    const end = ending.exec(this.#text);
    if (!end) throw this.#error(`the heredoc ${opening[1]} does not end`);
    const text = this.#text.slice(this.#at, ending.lastIndex);
    this.#at = ending.lastIndex;
    return text;
  }

  #comment = (): boolean => this.#take(/(?:#|\/\/)[^\n]*|\/\*[^]*?\*\//y) !== undefined;

  #skip(lines: boolean): void {
    while (this.#take(lines ? /\s+/y : /[ \t]+/y) !== undefined || this.#comment());
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text);
  }

  #take(pattern: RegExp): string | undefined {
    const found = this.#match(pattern)?.[0];
    if (found) this.#at += found.length;
    return found || undefined;
  }

  #unexpected(): HclError {
    const char = this.#text[this.#at];
    return this.#error(
      char === undefined ? 'the file ends too early' : `${JSON.stringify(char)} is not understood here`,
    );
  }

  #error = (message: string): HclError => new HclError(message, this.#text.slice(0, this.#at).split('\n').length);
}

/** The value of an expression where it is plain: a string without templates, a heredoc, null. Otherwise its text as it stands. */
export function plainValue(expression: string): string | null {
  if (expression === 'null') return null;
  if (expression.startsWith('<<')) return heredocValue(expression);
  if (/^"(?:[^"\\]|\\.)*"$/.test(expression) && !/(?<!\$)\$\{|(?<!%)%\{/.test(expression)) return unquote(expression);
  return expression;
}

function heredocValue(expression: string): string {
  const lines = expression.split('\n');
  const indented = expression.startsWith('<<-');
  const body = lines.slice(1, -1);
  const margins = body.filter((line) => line.trim() !== '').map((line) => /^[ \t]*/.exec(line)![0].length);
  const margin = indented && margins.length > 0 ? Math.min(...margins) : 0;
  return body.map((line) => `${line.slice(margin)}\n`).join('');
}

const ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\' };

function unquote(literal: string): string {
  return literal
    .slice(1, -1)
    .replaceAll(/\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))/g, (whole, short, long, char) => {
      const code = short ?? long;
      if (code) return Number.parseInt(code, 16) <= 0x10ffff ? String.fromCodePoint(Number.parseInt(code, 16)) : whole;
      return ESCAPES[char] ?? whole;
    })
    .replaceAll('$${', '${')
    .replaceAll('%%{', '%{');
}
