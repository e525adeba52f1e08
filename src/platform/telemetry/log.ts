import { pino, type Logger } from 'pino';
import { printable, spelledJson } from '#kernel/printable.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Creates the log of commands, whose standard output is their answer: warnings, on standard error. */
export const createQuietLog = (): Logger =>
  pino({ level: 'warn', base: null, hooks: { streamWrite: printable } }, pino.destination(2));

/** JSON lines; for people on a terminal, coloured ones. Tokens never get in. */
export async function createLog(settings: Settings): Promise<Logger> {
  const { isTTY } = process.stdout;
  const options = {
    level: settings.logLevel,
    redact: ['req.headers.authorization', 'headers.authorization'],
    base: null,
    // JSON escapes most of what a terminal obeys; the rest is escaped as well, and on a terminal all of it is spelled out.
    hooks: { streamWrite: isTTY ? spelledJson : printable },
  };
  if (!isTTY) return pino(options, gatheringOutput());
  const { default: pretty } = await import('pino-pretty');
  return pino(options, pretty({ colorize: true, translateTime: 'HH:MM:ss', ignore: 'pid,hostname,reqId' }));
}

const GATHER_BYTES = 8_192;
const GATHER_MS = 100;
/** pino's number of this level. */
const WARN = 40;

/**
 * Opens the standard output with a buffer, because a system call for each line costs more than the line. Lines are written when
 * GATHER_BYTES have come together, after GATHER_MS, at a warning or an error, and when the process ends. A killed process loses the lines
 * of its last tenth of a second.
 */
function gatheringOutput() {
  const output = pino.destination({ fd: 1, sync: false, minLength: GATHER_BYTES, periodicFlush: GATHER_MS });
  process.once('exit', () => output.flushSync());
  return {
    // pino tells the level of each line to a stream that has this.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 0,
    write(line: string) {
      output.write(line);
      if (this.lastLevel >= WARN) output.flushSync();
    },
  };
}
