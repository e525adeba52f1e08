import { ParsingError, readFileOf } from '#kernel/parsing/index.ts';
import type { DockerfileInstruction, DockerfileText } from '#kernel/parsing/formats.ts';
import { expandWord, splitWords } from '#kernel/parsing/dockerfile-words.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Instruction of a Dockerfile, not yet expanded. */
export type Instruction = DockerfileInstruction;

/** Instructions from one FROM to the next. */
export interface Stage {
  /** Name after AS, lower case; null without. */
  name: string | null;
  /** Expanded image or stage after FROM. */
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

/** Returns an error of the Dockerfile, with its line. */
export const dockerfileError = (line: number, message: string) =>
  new RuntimeError('build_failed', `Dockerfile line ${line}: ${message}`);

/** Parses a Dockerfile of an organization. Throws RuntimeError `build_failed` that names the line of the error. */
export async function parseDockerfile(
  content: string,
  buildArguments: Record<string, string>,
  organizationId: string,
): Promise<ParsedDockerfile> {
  return stagesOf(await readInstructions(content, organizationId), buildArguments);
}

/** Sorts instructions into stages. Throws like `parseDockerfile`. */
export function stagesOf(
  { escape, instructions }: DockerfileText,
  buildArguments: Record<string, string>,
): ParsedDockerfile {
  const stages: Stage[] = [];
  const globals: Record<string, string | undefined> = {};
  for (const instruction of instructions) {
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

async function readInstructions(content: string, organizationId: string): Promise<DockerfileText> {
  try {
    return await readFileOf(organizationId, 'dockerfile', { name: 'Dockerfile', text: content });
  } catch (error) {
    if (error instanceof ParsingError) throw new RuntimeError('build_failed', error.message, error);
    throw error;
  }
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

/** Parses `KEY=value …`, or the old form `KEY value with blanks`. */
export function pairs(instruction: Instruction, lookup: (name: string) => string | undefined, escape: string) {
  const old = /^([^\s="']+)\s+([^]*)$/.exec(instruction.text);
  if (old) return [[old[1]!, expandWord(old[2]!, lookup, escape)] as const];
  return splitWords(instruction.text, lookup, escape).map((word) => {
    const [name, value] = cutAt(word, '=');
    if (value === undefined) throw dockerfileError(instruction.line, `"${word}" has no "=".`);
    return [name, value] as const;
  });
}

/** Splits a text at the first occurrence of the separator; without one the second part is undefined. */
export function cutAt(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** Returns the position of the stage with a name or number; -1 if there is none. */
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
