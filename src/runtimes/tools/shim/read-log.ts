import { statSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { charactersOf } from '#runtimes/tools/log-limits.ts';
import type { LogWindow } from '#runtimes/tools/log-window.ts';
import { parseLine, type LoggedLine } from '#runtimes/tools/shim/log.ts';
import { identityOf, openByIdentity, openEarlier, openNewest } from '#runtimes/tools/shim/log-files.ts';
import { logFile } from '#runtimes/tools/shim/state.ts';

export type ShimLogLine = LoggedLine;

/** End of a log at one moment: the place between the lines that were read from it and those that are followed. */
export interface LogEnd {
  /** Identity of the newest file. */
  file: string;
  /** Bytes of that file. */
  size: number;
}

/** Returns the end of a log; null if it has none yet. */
export function endOfLog(directory: string): LogEnd | null {
  const stats = statSync(logFile(directory), { bigint: true, throwIfNoEntry: false });
  return stats ? { file: identityOf(stats), size: Number(stats.size) } : null;
}

/**
 * Returns the last `tail` lines of a window of a shim's log, rotated files included, oldest first: fewer where they are more than so many
 * characters. Reads no more of the files than needed, and with `end` none of what was written behind it. Damaged lines are left out. Other work
 * of the process goes on between parts of 64 KiB.
 */
export async function readShimLog(
  directory: string,
  tail: number,
  window: LogWindow = {},
  end: LogEnd | null = null,
  most = charactersOf(1),
): Promise<ShimLogLine[]> {
  const { from = '', to } = window;
  const lines: ShimLogLine[] = [];
  let characters = 0;
  if (tail < 1) return lines;
  for await (const texts of linesFromEnd(logFile(directory), end)) {
    for (const text of texts) {
      const line = parseLine(text);
      if (line === null) continue;
      if (line.time < from) return lines.reverse();
      if (to !== undefined && line.time >= to) continue;
      characters += line.text.length;
      if (characters > most || lines.push(line) === tail) return lines.reverse();
    }
  }
  return lines.reverse();
}

/** Number of bytes read at once from the end of a log file. */
const CHUNK = 64 * 1024;
const NEWLINE = 0x0a;
/** Bytes of a line; a longer one is none that a shim writes, and is left out. */
export const LONGEST_LINE_BYTES = 1024 * 1024;

/** Yields the lines of a log and its rotated files before an end, newest first, in parts. */
async function* linesFromEnd(path: string, end: LogEnd | null): AsyncGenerator<string[]> {
  let file = end ? await openByIdentity(path, end.file) : await openNewest(path);
  while (file !== null) {
    let earlier: FileHandle | null;
    try {
      const stats = await file.stat({ bigint: true });
      const identity = identityOf(stats);
      const size = Number(stats.size);
      yield* fileFromEnd(file, end?.file === identity ? Math.min(end.size, size) : size);
      earlier = await openEarlier(path, identity);
    } finally {
      await file.close();
    }
    file = earlier;
  }
}

/** Yields the lines of a file before a position, newest first, in parts, without an unfinished one at the end. */
async function* fileFromEnd(file: FileHandle, end: number): AsyncGenerator<string[]> {
  let at = end;
  /** End of a line whose beginning is not read yet, with its line end; at first, what follows the last line end. */
  let rest = Buffer.alloc(0);
  while (at > 0) {
    const part = Buffer.alloc(Math.min(CHUNK, at));
    at -= part.length;
    await file.read(part, 0, part.length, at);
    const bytes = Buffer.concat([part, rest]);
    const start = at === 0 ? 0 : bytes.indexOf(NEWLINE) + 1;
    const isCut = at > 0 && start === 0;
    rest = isCut ? bytes : bytes.subarray(0, start);
    // What is left of a line without its end is no JSON.
    if (rest.length > LONGEST_LINE_BYTES) rest = rest.subarray(-1);
    if (!isCut) yield bytes.toString('utf8', start).split('\n').slice(0, -1).reverse();
  }
}
