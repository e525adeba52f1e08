import { DockerfileParser, type Dockerfile, type Instruction as Parsed } from 'dockerfile-ast';
import type { DockerfileInstruction, DockerfileText } from '#kernel/parsing/formats.ts';

/** Reads the instructions of a Dockerfile, known or not. */
export function parseDockerfile(content: string): DockerfileText {
  const file = DockerfileParser.parse(content);
  const escape = file.getEscapeCharacter() || '\\';
  const lines = content.split(/\r?\n/);
  return { escape, instructions: file.getInstructions().map((parsed) => toInstruction(parsed, lines, escape)) };
}

function toInstruction(parsed: Parsed, lines: string[], escape: string): DockerfileInstruction {
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

function heredocsOf(parsed: Parsed, lines: string[]): DockerfileInstruction['heredocs'] {
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
