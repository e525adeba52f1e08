import { DockerfileParser, type Dockerfile, type Instruction as Parsed } from 'dockerfile-ast';
import { expandWord, splitWords } from '#runtimes/host/build/words.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** One instruction, not yet expanded. */
export interface Instruction {
  /** Line of the file, from 1. */
  line: number;
  keyword: string;
  /** Values by name, in the order written. */
  flags: Record<string, string[]>;
  /** Arguments with continued lines joined and comments gone. */
  text: string;
  /** The elements of an exec form (`["node", "server.js"]`), null for text. */
  json: string[] | null;
  /** Here-documents by name, in order; `literal` when the name is quoted. */
  heredocs: { name: string; content: string; literal: boolean }[];
}

/** Instructions from one FROM to the next. */
export interface Stage {
  /** Name after AS, lower case; null without. */
  name: string | null;
  /** What FROM names, expanded. */
  base: string;
  line: number;
  instructions: Instruction[];
}

export interface ParsedDockerfile {
  stages: Stage[];
  /** ARG before the first FROM with their values: a stage sees those that it declares itself. */
  globals: Record<string, string | undefined>;
  escape: string;
}

const KNOWN = new Set(
  'FROM RUN COPY ADD WORKDIR ENV ARG EXPOSE CMD ENTRYPOINT USER LABEL HEALTHCHECK SHELL STOPSIGNAL VOLUME MAINTAINER ONBUILD'.split(
    ' ',
  ),
);

/** An error of the Dockerfile, with its line. */
export const dockerfileError = (line: number, message: string) =>
  new RuntimeError('build_failed', `Dockerfile line ${line}: ${message}`);

/** Reads a Dockerfile. Throws RuntimeError `build_failed` that names the line of what cannot be understood. */
export function parseDockerfile(content: string, buildArguments: Record<string, string>): ParsedDockerfile {
  const file = DockerfileParser.parse(content);
  const escape = file.getEscapeCharacter() || '\\';
  const lines = content.split(/\r?\n/);
  const stages: Stage[] = [];
  const globals: Record<string, string | undefined> = {};
  for (const parsed of file.getInstructions()) {
    const instruction = toInstruction(parsed, lines, escape);
    if (!KNOWN.has(instruction.keyword))
      throw dockerfileError(instruction.line, `${instruction.keyword} is not an instruction.`);
    if (instruction.keyword === 'FROM') stages.push(toStage(instruction, globals, escape));
    else if (stages.length) stages.at(-1)!.instructions.push(instruction);
    else if (instruction.keyword === 'ARG') declareArguments(instruction, globals, buildArguments, {}, escape);
    else throw dockerfileError(instruction.line, `${instruction.keyword} stands before the first FROM.`);
  }
  if (stages.length === 0) throw new RuntimeError('build_failed', 'The Dockerfile has no FROM.');
  return { stages, globals, escape };
}

/**
 * Sets the variables of an ARG: the build argument of that name, else the value written, else that of the ARG before the
 * first FROM.
 */
export function declareArguments(
  instruction: Instruction,
  variables: Record<string, string | undefined>,
  given: Record<string, string>,
  inherited: Record<string, string | undefined>,
  escape: string,
): void {
  const lookup = (name: string) => variables[name];
  for (const word of splitWords(instruction.text, lookup, escape)) {
    const [name, value] = cutAt(word, '=');
    variables[name] = given[name] ?? value ?? inherited[name];
  }
}

/** `KEY=value …`, or the old form `KEY value with blanks`. */
export function pairs(instruction: Instruction, lookup: (name: string) => string | undefined, escape: string) {
  const old = /^([^\s="']+)\s+([^]*)$/.exec(instruction.text);
  if (old) return [[old[1]!, expandWord(old[2]!, lookup, escape)] as const];
  return splitWords(instruction.text, lookup, escape).map((word) => {
    const [name, value] = cutAt(word, '=');
    if (value === undefined) throw dockerfileError(instruction.line, `"${word}" has no "=".`);
    return [name, value] as const;
  });
}

/** Cuts at the first occurrence; the second part is undefined without one. */
export function cutAt(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** Position of the stage of a name or number; -1 when there is none. */
export function stageIndex(stages: readonly Stage[], name: string): number {
  const index = stages.findIndex((stage) => stage.name === name.toLowerCase());
  if (index >= 0 || !/^\d+$/.test(name)) return index;
  return Number(name) < stages.length ? Number(name) : -1;
}

function toStage(instruction: Instruction, globals: Record<string, string | undefined>, escape: string): Stage {
  const words = splitWords(instruction.text, (name) => globals[name], escape);
  const [base, as, name] = words;
  if (!base || (words.length !== 1 && (words.length !== 3 || as!.toUpperCase() !== 'AS')))
    throw dockerfileError(instruction.line, 'FROM is written "FROM image" or "FROM image AS name".');
  return { name: name?.toLowerCase() ?? null, base, line: instruction.line, instructions: [] };
}

function toInstruction(parsed: Parsed, lines: string[], escape: string): Instruction {
  const line = parsed.getRange().start.line + 1;
  const heredocs = heredocsOf(parsed, lines);
  const raw = parsed.getRawArgumentsContent() ?? '';
  const text = joinLines(heredocs.length ? raw.split('\n')[0]! : raw, escape);
  const flags: Record<string, string[]> = {};
  for (const flag of flagsOf(parsed)) (flags[flag.getName()] ??= []).push(flag.getValue() ?? '');
  return { line, keyword: parsed.getKeyword(), flags, text, json: jsonOf(text), heredocs };
}

type Flagged = Parsed & { getFlags(): { getName(): string; getValue(): string | null }[] };
const flagsOf = (parsed: Parsed) => ('getFlags' in parsed ? (parsed as Flagged).getFlags() : []);

type WithHeredocs = {
  getHeredocs(): ReturnType<Extract<ReturnType<Dockerfile['getCOPYs']>[number], object>['getHeredocs']>;
};

function heredocsOf(parsed: Parsed, lines: string[]): Instruction['heredocs'] {
  if (!['RUN', 'COPY', 'ADD'].includes(parsed.getKeyword())) return [];
  return (parsed as unknown as WithHeredocs).getHeredocs().map((heredoc) => {
    const range = heredoc.getContentRange();
    const start = heredoc.getStartRange();
    const written = lines[start.start.line]!.slice(start.start.character);
    const content = range ? lines.slice(range.start.line, range.end.line + 1) : [];
    const last = range && range.end.character === 0 ? content.slice(0, -1) : content;
    const stripped = written.startsWith('<<-') ? last.map((text) => text.replace(/^\t+/, '')) : last;
    return {
      name: heredoc.getName(),
      content: stripped.map((text) => `${text}\n`).join(''),
      literal: /^<<-?["']/.test(written),
    };
  });
}

/** Joins lines that end with the escape character; comments and empty lines between them are left out. */
function joinLines(raw: string, escape: string): string {
  const lines = raw.split(/\r?\n/);
  let text = '';
  lines.forEach((line, n) => {
    if (n > 0 && (line.trim() === '' || line.trimStart().startsWith('#'))) return;
    const trimmed = line.trimEnd();
    text += trimmed.endsWith(escape) && n < lines.length - 1 ? trimmed.slice(0, -1) : line;
  });
  return text.trim();
}

function jsonOf(text: string): string[] | null {
  if (!text.startsWith('[')) return null;
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : null;
  } catch (error) {
    // As with other builders, what looks like a list but isn't one is text for the shell.
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
