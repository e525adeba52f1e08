import { Cron } from 'croner';

const MACROS = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);

interface Field {
  name: string;
  min: number;
  max: number;
  /** Names of the values from `min` on. */
  names?: string[];
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

const FIELDS: Field[] = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12, names: MONTHS },
  // 7 is Sunday as well.
  { name: 'day of week', min: 0, max: 7, names: DAYS },
];

/** Reason why a cron expression cannot be used. */
class CronProblem extends Error {}

/** Parsed expression. */
interface Pattern {
  /** Values that each field names, in the order of `FIELDS`. */
  values: number[][];
  /** Two days that are both given are alternatives; a day that begins with `*` narrows the other (cron(8)). */
  bothDays: boolean;
}

function valueOf(text: string, field: Field): number {
  const named = field.names?.indexOf(text.toUpperCase()) ?? -1;
  if (named >= 0) return named + field.min;
  const value = /^\d{1,2}$/.test(text) ? Number(text) : NaN;
  if (value >= field.min && value <= field.max) return value;
  const names = field.names ? ` or ${field.names[0]} to ${field.names.at(-1)}` : '';
  throw new CronProblem(`the ${field.name} takes ${field.min} to ${field.max}${names}, not "${text}"`);
}

function rangeOf(text: string, field: Field, hasStep: boolean): [number, number] {
  if (text === '*' || (text === '?' && field.name.startsWith('day'))) return [field.min, field.max];
  const [first, last, ...more] = text.split('-');
  if (more.length > 0) throw new CronProblem(`"${text}" is no range of the ${field.name}; one is written 1-5`);
  const from = valueOf(first!, field);
  // 5/15 is every fifteenth from 5 on.
  if (last === undefined) return [from, hasStep ? field.max : from];
  const to = valueOf(last, field);
  // A week that ends with Sunday: FRI-SUN.
  const end = to === 0 && from > 0 && field.names === DAYS ? 7 : to;
  if (from > end) throw new CronProblem(`the range "${text}" of the ${field.name} goes backwards`);
  return [from, end];
}

function itemOf(text: string, field: Field): number[] {
  const [range, step, ...more] = text.split('/');
  const by = step === undefined ? 1 : /^\d{1,2}$/.test(step) ? Number(step) : 0;
  if (more.length > 0 || by < 1 || by > field.max)
    throw new CronProblem(`the step of "${text}" of the ${field.name} is a number from 1 to ${field.max}`);
  const [from, to] = rangeOf(range!, field, step !== undefined);
  return Array.from({ length: Math.floor((to - from) / by) + 1 }, (_, at) => from + at * by);
}

const listOf = (text: string, field: Field): number[] => [
  ...new Set(text.split(',').flatMap((item) => itemOf(item, field))),
];

function parse(expression: string): Pattern {
  const trimmed = expression.trim();
  const macro = MACROS.get(trimmed.toLowerCase());
  if (trimmed.startsWith('@') && !macro)
    throw new CronProblem(`"${trimmed}" is none of ${[...MACROS.keys()].join(', ')}`);
  const parts = (macro ?? trimmed).split(/\s+/);
  if (parts.length !== FIELDS.length)
    throw new CronProblem(
      'a cron expression has five fields: minute, hour, day of month, month, day of week, such as "30 4 * * MON-FRI"',
    );
  return {
    values: parts.map((part, at) => listOf(part, FIELDS[at]!)),
    bothDays: [parts[2]!, parts[4]!].some((part) => /^[*?]/.test(part)),
  };
}

const LONGEST_MONTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Returns whether any year has a day of the pattern. Croner would search 10,000 years for a 31st of February. */
function comes({ values: [, , days, months], bothDays }: Pattern): boolean {
  return !bothDays || months!.some((month) => days!.some((day) => day <= LONGEST_MONTHS[month - 1]!));
}

/** Writes a pattern with every value listed: steps and ranges then decide about changes of clocks as lists do. */
const listed = ({ values }: Pattern): string =>
  values.map((field, at) => (at === 1 && field.length === 24 ? '*' : field.join(','))).join(' ');

/**
 * Returns what is wrong with a cron expression, or undefined. An expression has five fields (numbers, names of months and days, ranges,
 * lists, steps) or is one of `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`.
 * A day that never comes, such as a 31st of February, is accepted: people switch a job off with it.
 */
export function checkCron(expression: string): string | undefined {
  try {
    parse(expression);
    return undefined;
  } catch (error) {
    if (error instanceof CronProblem) return error.message;
    throw error;
  }
}

/**
 * Returns the first time after `after` that an expression names on the clocks of a zone, or null. The caller has checked expression and
 * zone (`checkCron`, `timeZoneNamed`). With named hours, a time that the clocks jump over runs once, at the first valid minute after it,
 * and a time that the clocks show twice runs once, at the first. A schedule of every hour follows elapsed time: it runs in both of two equal
 * hours, and not in an hour that is left out.
 */
export function nextRun(expression: string, timeZone: string, after: Date): Date | null {
  const pattern = parse(expression);
  if (!comes(pattern)) return null;
  const options = { mode: '5-part', domAndDow: pattern.bothDays, fixedTimeRule: 'no-wildcard', paused: true } as const;
  return new Cron(listed(pattern), { ...options, timezone: timeZone }).nextRun(after);
}
