import { instantOf } from '#kernel/time-zone.ts';

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

/** A cron expression that cannot be used, and why. */
class CronProblem extends Error {}

/** What an expression names, each list in order. */
interface Pattern {
  minutes: number[];
  hours: number[];
  days: Set<number>;
  months: Set<number>;
  /** 0 is Sunday. */
  weekdays: Set<number>;
  /** Of two days that are both given either will do; one that begins with `*` narrows the other (cron(8)). */
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

const listOf = (text: string, field: Field): number[] =>
  [...new Set(text.split(',').flatMap((item) => itemOf(item, field)))].sort((a, b) => a - b);

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
  const [minutes, hours, days, months, weekdays] = parts.map((part, at) => listOf(part, FIELDS[at]!));
  return {
    minutes: minutes!,
    hours: hours!,
    days: new Set(days),
    months: new Set(months),
    weekdays: new Set(weekdays!.map((day) => day % 7)),
    bothDays: [parts[2]!, parts[4]!].some((part) => /^[*?]/.test(part)),
  };
}

/** A 29th of February on a given day of the week comes within 40 years, over a year such as 2100. */
const LOOK_AHEAD_YEARS = 41;

/** The days that a pattern names, from a date on. */
function* datesFrom(pattern: Pattern, first: Temporal.PlainDate): Generator<Temporal.PlainDate> {
  const end = first.add({ years: LOOK_AHEAD_YEARS });
  for (let date = first; Temporal.PlainDate.compare(date, end) < 0;) {
    if (!pattern.months.has(date.month)) {
      date = date.with({ day: 1 }).add({ months: 1 });
      continue;
    }
    const [day, weekday] = [pattern.days.has(date.day), pattern.weekdays.has(date.dayOfWeek % 7)];
    if (pattern.bothDays ? day && weekday : day || weekday) yield date;
    date = date.add({ days: 1 });
  }
}

/** The times that a pattern names on the clocks, from a minute on, as if no clock were ever changed. */
function* timesFrom(pattern: Pattern, first: Temporal.PlainDateTime): Generator<Temporal.PlainDateTime> {
  const from = first.hour * 60 + first.minute;
  for (const date of datesFrom(pattern, first.toPlainDate())) {
    const isFirst = date.equals(first);
    for (const hour of pattern.hours)
      for (const minute of pattern.minutes)
        if (!isFirst || hour * 60 + minute >= from) yield date.toPlainDateTime({ hour, minute });
  }
}

/** Hours are named: each time is one instant of its date, whatever the clocks do. */
function nextNamed(pattern: Pattern, zone: string, after: Temporal.Instant): Temporal.Instant | null {
  const from = after.toZonedDateTimeISO(zone).toPlainDate().subtract({ days: 1 }).toPlainDateTime();
  for (const time of timesFrom(pattern, from)) {
    const at = instantOf(time.toPlainDate(), time.hour * 60 + time.minute, zone);
    if (Temporal.Instant.compare(at, after) > 0) return at;
  }
  return null;
}

const DAY_MS = 86_400_000;

/** Every hour: time goes on as it passes, through the second of two equal hours too. Between changes of the clocks it is plain arithmetic. */
function nextEveryHour(pattern: Pattern, zone: string, after: Temporal.Instant): Temporal.Instant | null {
  const minute = Temporal.Instant.fromEpochMilliseconds(Math.floor(after.epochMilliseconds / 60_000 + 1) * 60_000);
  for (let from = minute.toZonedDateTimeISO(zone); ;) {
    const shown = from.toPlainDateTime();
    const time = timesFrom(pattern, shown).next().value;
    if (!time) return null;
    const at = from.toInstant().add(shown.until(time, { largestUnit: 'hours' }));
    const near = at.epochMilliseconds - from.epochMilliseconds < DAY_MS;
    // Within a day nobody changes clocks and changes them back, and asking for the change costs more than all the rest.
    if (near && at.toZonedDateTimeISO(zone).offsetNanoseconds === from.offsetNanoseconds) return at;
    const change = from.getTimeZoneTransition('next');
    if (!change || Temporal.Instant.compare(at, change.toInstant()) < 0) return at;
    // Between the clock's present time and the one that was found none is named: a rare day is not looked for after every change.
    const dayBefore = time.subtract({ days: 1 }).toZonedDateTime(zone);
    from = Temporal.ZonedDateTime.compare(dayBefore, change) > 0 ? dayBefore : change;
  }
}

/**
 * What is wrong with a cron expression, for the caller to read; undefined where nothing is. It has five fields (numbers, names of months and
 * days, ranges, lists, steps) or is one of `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`.
 * A day that never comes, such as a 31st of February, is no mistake: people switch a job off with it.
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
 * The first time after `after` that an expression names on the clocks of an IANA zone; null where none comes. Both are to have been checked
 * (`checkCron`, `timeZoneNamed`). Where the hours are named, a time that the clocks jump over runs once, at the first valid minute after it,
 * and a time that they show twice runs once, at the first. What runs every hour goes on as time passes: through both of two equal hours, and
 * not for one that was left out.
 */
export function nextRun(expression: string, timeZone: string, after: Date): Date | null {
  const pattern = parse(expression);
  const everyHour = pattern.hours.length === 24;
  const at = Temporal.Instant.fromEpochMilliseconds(after.getTime());
  const next = everyHour ? nextEveryHour(pattern, timeZone, at) : nextNamed(pattern, timeZone, at);
  return next && new Date(next.epochMilliseconds);
}
