import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { KeptLog } from '#runtimes/former-log-store.ts';
import type { LogLine, LogOptions } from '#runtimes/runtime.ts';
import { charactersOf } from '#runtimes/tools/log-limits.ts';
import { earliestOf, isChosen, isWithin, later } from '#runtimes/tools/log-window.ts';

/** Instance that has ended, or is about to be removed. */
export interface EndedInstance {
  serviceId: string;
  name: string;
  generation: number;
  /** Tells it from an earlier instance of the same name: letters, digits and hyphens. */
  key: string;
  /** Start of its last run in ISO 8601; null if unknown. */
  lastRunFrom: string | null;
}

/** Limits of lines and characters of one log that is kept: the newest stay. */
export const MOST_KEPT = { lines: 100_000, characters: charactersOf(1) };

/** Bytes of a log that is unpacked: one that holds more was not packed here. */
const MOST_UNPACKED = 4 * MOST_KEPT.characters + 64 * MOST_KEPT.lines;
/** Characters of all logs that are read at once. */
const MOST_READ = charactersOf(1) * 8;

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** Packs the lines of an instance, for `newestLines`. */
export function packLog(
  { generation, lastRunFrom }: Pick<EndedInstance, 'generation' | 'lastRunFrom'>,
  lines: LogLine[],
): Promise<Buffer> {
  const texts = lines.map(({ at, stream, text }) => JSON.stringify([at, stream, text]));
  return compress([JSON.stringify({ generation, lastRunFrom }), ...texts].join('\n'));
}

/** Returns the newest lines of logs, oldest first. The log of the instance that ended last must come first: older ones may not be read. */
export async function newestLines(logs: Iterable<KeptLog>, options: Omit<LogOptions, 'follow'>): Promise<LogLine[]> {
  const earliest = earliestOf(options);
  let lines: LogLine[] = [];
  let characters = 0;
  for (const log of logs) {
    options.signal.throwIfAborted();
    if (!isChosen(log.instance, options)) continue;
    if (earliest !== undefined && log.endedAt < Date.parse(earliest)) continue;
    // All that it has is older than as many lines as are wanted.
    if (lines.length >= options.tail && log.endedAt < Date.parse(lines[0]!.at)) break;
    const found = (await linesOf(log, { from: earliest, lastRun: options.previous ?? false })).slice(-options.tail);
    for (const { text } of found) characters += text.length;
    lines = [...lines, ...found].sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0));
    lines = lines.slice(-options.tail);
    if (characters > MOST_READ) break;
  }
  return lines;
}

async function linesOf(log: KeptLog, { from, lastRun }: { from: string | undefined; lastRun: boolean }) {
  const packed = await log.read();
  if (packed === null) return [];
  let texts: string[];
  try {
    texts = (await decompress(packed, { maxOutputLength: MOST_UNPACKED })).toString().split('\n');
  } catch (error) {
    // The other logs are still of use.
    await log.isDamaged(error as Error);
    return [];
  }
  const { generation, lastRunFrom } = JSON.parse(texts[0]!) as Pick<EndedInstance, 'generation' | 'lastRunFrom'>;
  const window = { from: later(lastRun ? (lastRunFrom ?? undefined) : undefined, from) };
  return texts.slice(1).flatMap((line): LogLine[] => {
    const [at, stream, text] = JSON.parse(line) as [string, LogLine['stream'], string];
    return isWithin(at, window) ? [{ at, instance: log.instance, generation, stream, text }] : [];
  });
}
