/** Word of a policy's text. `line` counts from 1. */
export interface Token {
  kind: 'name' | 'string' | 'number' | 'sign' | 'newline' | 'end';
  /** Spelling of the word; of strings the value. */
  text: string;
  line: number;
}

/** Fault of a policy, with its line. */
export class PolicyError extends Error {
  constructor(message: string, line?: number) {
    super(line === undefined ? message : `line ${line}: ${message}`);
    this.name = 'PolicyError';
  }
}

const PARTS =
  /(?<blank>[ \t\r]+|#[^\n]*)|(?<newline>\n)|(?<string>"(?:[^"\\\n]|\\.)*")|(?<raw>`[^`]*`)|(?<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?<name>[A-Za-z_]\w*)|(?<sign>:=|==|!=|<=|>=|[=<>{}[\]().,;:])/y;

/** Splits a policy's text into tokens. Throws PolicyError. */
export function lex(text: string): Token[] {
  const tokens: Token[] = [];
  let line = 1;
  let at = 0;
  while (at < text.length) {
    PARTS.lastIndex = at;
    const groups = PARTS.exec(text)?.groups;
    if (!groups) throw new PolicyError(`"${text[at]}" is not understood here`, line);
    const [kind, spelling] = Object.entries(groups).find(([, value]) => value !== undefined) as [string, string];
    if (kind === 'string') tokens.push({ kind, text: unquote(spelling, line), line });
    else if (kind === 'raw') tokens.push({ kind: 'string', text: spelling.slice(1, -1), line });
    else if (kind !== 'blank') tokens.push({ kind: kind as Token['kind'], text: spelling, line });
    line += spelling.split('\n').length - 1;
    at += spelling.length;
  }
  tokens.push({ kind: 'end', text: 'the end', line });
  return tokens;
}

function unquote(spelling: string, line: number): string {
  try {
    return JSON.parse(spelling) as string;
  } catch (error) {
    throw new PolicyError(`${spelling} is not a string (${(error as Error).message})`, line);
  }
}
