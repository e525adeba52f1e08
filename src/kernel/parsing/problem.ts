import type { Question, Reply } from '#kernel/parsing/formats.ts';

/** Error of a parser for a file that holds more than is read. */
export class TooMuch extends Error {}

/** Converts the error of a parser to what its caller is told. */
export function problemOf(error: unknown): Extract<Reply, { problem: string }> {
  if (error instanceof RangeError) return { problem: 'it is nested too deeply', kind: 'limit', broken: true };
  const problem = (error as Error).message.split('\n')[0]!.slice(0, 500);
  return { problem, kind: error instanceof TooMuch ? 'limit' : 'fault' };
}

export const decodeText = (text: Question['text']): string =>
  typeof text === 'string' ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString('utf8');
