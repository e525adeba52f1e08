import { storable } from '#kernel/storable.ts';
import type { KnownCause } from '#deployments/causes/cause.ts';
import { BUILD_COMMAND_CAUSES, BUILD_MESSAGE_CAUSES, BUILD_OUTPUT_CAUSES } from '#deployments/causes/build.ts';
import { CLUSTER_CAUSES, DISK_CAUSES, EXECUTION_CAUSES, VARIABLE_CAUSES } from '#deployments/causes/platform.ts';
import { PROGRAM_CAUSES } from '#deployments/causes/program.ts';
import { IMAGE_CAUSES, REPOSITORY_CAUSES } from '#deployments/causes/source.ts';
import { START_CAUSES } from '#deployments/causes/start.ts';
import type { Cause, ErrorCode } from '#deployments/model/errors.ts';

/** Known causes by code. The first that fits is taken: what says more stands before what says less. */
export const KNOWN_CAUSES: Readonly<Record<string, KnownCause>> = {
  ...REPOSITORY_CAUSES,
  ...VARIABLE_CAUSES,
  ...BUILD_MESSAGE_CAUSES,
  ...BUILD_OUTPUT_CAUSES,
  ...IMAGE_CAUSES,
  ...PROGRAM_CAUSES,
  ...BUILD_COMMAND_CAUSES,
  ...START_CAUSES,
  ...EXECUTION_CAUSES,
  ...DISK_CAUSES,
  ...CLUSTER_CAUSES,
};

/** Failure of a service, with what its programs have written. */
interface Failure {
  code: ErrorCode;
  message: string;
  /** Masked lines, the oldest first. */
  output: readonly string[];
}

/** Number of last lines of a failure that are searched. */
export const SEARCHED_LINES = 200;

/** Number of lines that an answer has, and characters of a line that count. */
const SHOWN_LINES = 3;
const LINE_LENGTH = 500;

/** Line that warns of what may be, and so is no cause. */
const WARNING = /^(?:npm warn|warning\b)/i;

/** Returns the cause of a failure; null if none of the known ones fits. */
export function diagnose({ code, message, output }: Failure): Cause | null {
  const said = firstLineOf(message);
  const lines = output
    .slice(-SEARCHED_LINES)
    .filter((line) => !WARNING.test(line))
    .map((line) => line.slice(0, LINE_LENGTH).trimEnd());
  for (const [name, cause] of Object.entries(KNOWN_CAUSES)) {
    if (!cause.of.includes(code)) continue;
    const shown = cause.output ? lines.filter((line) => cause.output!.test(line)) : [];
    if (shown.length === 0 && !cause.message?.test(said)) continue;
    const { summary, fix } = cause;
    return { code: name, summary, fix, lines: [...new Set(shown)].slice(-SHOWN_LINES).map(storable) };
  }
  return null;
}

/** Returns what we say ourselves: a program's last lines follow it, on lines of their own or after these words. */
const firstLineOf = (message: string): string =>
  message.split('\n', 1)[0]!.split(' Last lines of its log:', 1)[0]!.slice(0, 2000);
