import { badRequest } from '#kernel/errors.ts';

export interface Matcher {
  label: string;
  /** True if the label must be equal, false if it must differ. */
  equal: boolean;
  value: string;
}

interface LineFilter {
  contains: boolean;
  text: string;
}

/** The part of PromQL and LogQL that is understood here: a name, matchers of labels, filters of lines. */
export interface Selector {
  name: string | null;
  matchers: Matcher[];
  filters: LineFilter[];
}

const TOKEN = /\s*(?:([A-Za-z_:][\w:]*)|("(?:[^"\\]|\\.)*"|`[^`]*`)|(\|=|!=|=~|!~|\|~|[{}=,]))/y;

/**
 * Reads `name{label="value", other!="value"} |= "text" != "text"`. Throws 400 with `help` on anything else: expressions and
 * regular expressions need a store of their own.
 */
export function parseSelector(query: string, help: string): Selector {
  const tokens = tokensOf(query, help);
  const refuse = () => badRequest(`query: ${help}`);
  const selector: Selector = { name: null, matchers: [], filters: [] };
  let at = 0;
  const take = (): string => tokens[at++] ?? '';
  if (/^[A-Za-z_:]/.test(tokens[at] ?? '')) selector.name = take();
  if (tokens[at] === '{') {
    at++;
    while (tokens[at] !== '}') {
      const [label, operator, value] = [take(), take(), take()];
      if (!/^\w/.test(label) || (operator !== '=' && operator !== '!=') || !isText(value)) throw refuse();
      selector.matchers.push({ label, equal: operator === '=', value: textOf(value) });
      if (tokens[at] === ',') at++;
      else if (tokens[at] !== '}') throw refuse();
    }
    at++;
  }
  while (at < tokens.length) {
    const [operator, value] = [take(), take()];
    if ((operator !== '|=' && operator !== '!=') || !isText(value)) throw refuse();
    selector.filters.push({ contains: operator === '|=', text: textOf(value) });
  }
  return selector;
}

/** Tells whether labels satisfy the matchers; a missing label is the empty text, as in Prometheus. */
export const matches = (matchers: Matcher[], labels: Record<string, string>): boolean =>
  matchers.every(({ label, equal, value }) => ((labels[label] ?? '') === value) === equal);

function tokensOf(query: string, help: string): string[] {
  const tokens: string[] = [];
  const rest = query.trimEnd();
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < rest.length) {
    const match = TOKEN.exec(rest);
    if (!match) throw badRequest(`query: ${help}`);
    tokens.push((match[1] ?? match[2] ?? match[3])!);
  }
  return tokens;
}

const isText = (token: string): boolean => /^["`]/.test(token);

const textOf = (token: string): string =>
  token.startsWith('`')
    ? token.slice(1, -1)
    : token.slice(1, -1).replaceAll(/\\(.)/g, (_, char) => ESCAPES[char] ?? char);

const ESCAPES: Record<string, string> = { n: '\n', t: '\t', r: '\r' };
