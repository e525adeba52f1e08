import { pino, type Logger } from 'pino';
import pretty from 'pino-pretty';
import type { Settings } from '#platform/settings/index.ts';

/** The log of commands, whose standard output is their answer: warnings, on standard error. */
export const createQuietLog = (): Logger => pino({ level: 'warn', base: null }, pino.destination(2));

/** JSON lines; for people on a terminal, coloured ones. Tokens never get in. */
export function createLog(settings: Settings): Logger {
  const options = {
    level: settings.logLevel,
    redact: ['req.headers.authorization', 'headers.authorization'],
    base: null,
  };
  return process.stdout.isTTY
    ? pino(options, pretty({ colorize: true, translateTime: 'HH:MM:ss', ignore: 'pid,hostname,reqId' }))
    : pino(options);
}
