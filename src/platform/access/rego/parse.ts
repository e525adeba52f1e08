import { lex, PolicyError, type Token } from '#platform/access/rego/lex.ts';
import type { Comparison, Expression, Rule, Statement } from '#platform/access/rego/syntax.ts';

const COMPARISONS = ['==', '!=', '<', '<=', '>', '>=', '='];
const UNSUPPORTED = ['else', 'with', 'as'];
/** Nesting depth that no real policy reaches: recursion ends here instead of on the stack. */
const MAX_DEPTH = 50;
const TRUE: Expression = { kind: 'value', value: true };

/** Parses the rules of a policy. Throws PolicyError that names the line. */
export const parse = (text: string): Rule[] => new Parser(lex(text)).policy();

/** Reads the part of Rego that policies of tokens are written in (policy.ts says which) by recursive descent. */
class Parser {
  readonly #tokens: Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: Token[]) {
    this.#tokens = tokens;
  }

  policy(): Rule[] {
    const rules: Rule[] = [];
    this.#skipLines();
    this.#word('package');
    this.#dotted();
    for (this.#separators(); !this.#isEnd(); this.#separators()) {
      if (this.#takeWord('import')) this.#import();
      else rules.push(this.#rule());
      if (!this.#isEnd() && this.#next.kind !== 'newline' && !this.#isSign(';')) throw this.#unexpected();
    }
    return rules;
  }

  /** `rego.v1` and `future.keywords…` only say which words are keywords: here they always are. */
  #import(): void {
    const { line } = this.#next;
    const name = this.#dotted();
    if (name !== 'rego.v1' && !/^future\.keywords(\.\w+)?$/.test(name))
      throw new PolicyError(`import ${name} is not supported: only rego.v1 and future.keywords are`, line);
  }

  #rule(): Rule {
    const { line } = this.#next;
    const isDefault = this.#takeWord('default');
    const name = this.#name();
    if (this.#isSign('(') || this.#isSign('['))
      throw new PolicyError('functions and partial objects are not supported', line);
    if (isDefault) {
      this.#assignment();
      return { name, line, kind: 'default', value: this.#expression(), body: [] };
    }
    const isElement = this.#takeWord('contains');
    const hasValue = isElement || this.#isSign(':=') || this.#isSign('=');
    if (hasValue && !isElement) this.#assignment();
    const value = hasValue ? this.#expression() : TRUE;
    const body = this.#ruleBody(hasValue);
    return { name, line, kind: isElement ? 'element' : 'value', value, body };
  }

  #ruleBody(mayLack: boolean): Statement[] {
    if (this.#takeWord('if')) return this.#isSign('{') ? this.#block() : [this.#statement()];
    if (this.#isSign('{')) return this.#block();
    if (!mayLack) throw this.#unexpected();
    return [];
  }

  #block(): Statement[] {
    const { line } = this.#next;
    this.#sign('{');
    this.#enter();
    const statements: Statement[] = [];
    for (this.#separators(); !this.#isSign('}'); this.#separators()) {
      statements.push(this.#statement());
      if (!this.#isSign('}') && !this.#isSign(';') && this.#next.kind !== 'newline') throw this.#unexpected();
    }
    this.#sign('}');
    this.#depth--;
    if (statements.length === 0) throw new PolicyError('a body must not be empty', line);
    return statements;
  }

  #statement(): Statement {
    if (this.#takeWord('not')) return { kind: 'not', of: this.#expression() };
    if (this.#takeWord('some')) return this.#some();
    if (this.#takeWord('every')) {
      const names = this.#names();
      this.#word('in');
      return { kind: 'every', names, of: this.#operand(), body: this.#block() };
    }
    const { kind, text } = this.#next;
    if (kind === 'name' && this.#tokens[this.#at + 1]!.text === ':=') {
      this.#at += 2;
      return { kind: 'assign', name: text, of: this.#expression() };
    }
    return { kind: 'expression', of: this.#expression() };
  }

  #some(): Statement {
    const names = this.#names();
    return { kind: 'some', names, of: this.#takeWord('in') ? this.#operand() : null };
  }

  #names(): string[] {
    const names = [this.#name()];
    while (this.#takeSign(',')) names.push(this.#name());
    return names;
  }

  #expression(): Expression {
    const left = this.#operand();
    if (this.#takeWord('in')) return { kind: 'in', item: left, of: this.#operand() };
    const sign = this.#next;
    if (sign.kind !== 'sign' || !COMPARISONS.includes(sign.text)) return left;
    this.#at++;
    const operator = (sign.text === '=' ? '==' : sign.text) as Comparison;
    return { kind: 'compare', operator, left, right: this.#operand() };
  }

  #operand(): Expression {
    this.#skipLines();
    this.#enter();
    let of = this.#primary();
    for (;;) {
      if (this.#takeSign('.')) of = { kind: 'index', of, key: { kind: 'value', value: this.#name() } };
      else if (this.#takeSign('[')) {
        of = { kind: 'index', of, key: this.#operand() };
        this.#sign(']');
      } else if (this.#isSign('(')) {
        throw new PolicyError('of functions with a dot in their name none is supported', this.#next.line);
      } else {
        this.#depth--;
        return of;
      }
    }
  }

  #enter(): void {
    if (++this.#depth > MAX_DEPTH) throw new PolicyError('nested too deeply', this.#next.line);
  }

  #primary(): Expression {
    const token = this.#next;
    this.#at++;
    if (token.kind === 'string') return { kind: 'value', value: token.text };
    if (token.kind === 'number') return { kind: 'value', value: Number(token.text) };
    if (token.kind === 'name') return this.#named(token);
    if (token.text === '(') {
      const inner = this.#expression();
      this.#skipLines();
      this.#sign(')');
      return inner;
    }
    if (token.text === '[') return { kind: 'array', items: this.#list(']') };
    if (token.text === '{') return this.#braces();
    this.#at--;
    throw this.#unexpected();
  }

  #named({ text, line }: Token): Expression {
    if (text === 'true' || text === 'false') return { kind: 'value', value: text === 'true' };
    if (text === 'null') return { kind: 'value', value: null };
    if (UNSUPPORTED.includes(text)) throw new PolicyError(`"${text}" is not supported`, line);
    return this.#takeSign('(')
      ? { kind: 'call', name: text, args: this.#list(')') }
      : { kind: 'name', name: text, line };
  }

  #braces(): Expression {
    this.#skipLines();
    if (this.#takeSign('}')) return { kind: 'object', entries: [] };
    const first = this.#operand();
    if (!this.#isSign(':')) return { kind: 'set', items: this.#list('}', first) };
    const entries: [Expression, Expression][] = [];
    for (let key = first; ; key = this.#operand()) {
      this.#sign(':');
      entries.push([key, this.#operand()]);
      this.#skipLines();
      if (this.#takeSign('}')) return { kind: 'object', entries };
      this.#sign(',');
    }
  }

  /** Parses the rest of a list up to its closing sign; a comma before that is allowed. */
  #list(closing: string, first?: Expression): Expression[] {
    const items = first ? [first] : [];
    this.#skipLines();
    if (first && !this.#isSign(closing)) this.#sign(',');
    for (this.#skipLines(); !this.#takeSign(closing); this.#skipLines()) {
      items.push(this.#operand());
      this.#skipLines();
      if (!this.#isSign(closing)) this.#sign(',');
    }
    return items;
  }

  #isEnd = (): boolean => this.#next.kind === 'end';

  get #next(): Token {
    return this.#tokens[this.#at]!;
  }

  #isSign = (text: string): boolean => this.#next.kind === 'sign' && this.#next.text === text;

  #takeSign(text: string): boolean {
    if (!this.#isSign(text)) return false;
    this.#at++;
    return true;
  }

  #takeWord(text: string): boolean {
    if (this.#next.kind !== 'name' || this.#next.text !== text) return false;
    this.#at++;
    return true;
  }

  #sign(text: string): void {
    if (!this.#takeSign(text)) throw this.#unexpected(`"${text}"`);
  }

  #word(text: string): void {
    if (!this.#takeWord(text)) throw this.#unexpected(`"${text}"`);
  }

  #assignment(): void {
    if (!this.#takeSign(':=')) this.#sign('=');
  }

  #name(): string {
    if (this.#next.kind !== 'name') throw this.#unexpected('a name');
    return this.#tokens[this.#at++]!.text;
  }

  #dotted(): string {
    const parts = [this.#name()];
    while (this.#takeSign('.')) parts.push(this.#name());
    return parts.join('.');
  }

  #skipLines(): void {
    while (this.#next.kind === 'newline') this.#at++;
  }

  #separators(): void {
    while (this.#next.kind === 'newline' || this.#isSign(';')) this.#at++;
  }

  #unexpected(wanted?: string): PolicyError {
    const found = this.#next.kind === 'newline' ? 'the end of the line' : `"${this.#next.text}"`;
    return new PolicyError(
      `${found} is not understood here${wanted ? `: ${wanted} is required` : ''}`,
      this.#next.line,
    );
  }
}
