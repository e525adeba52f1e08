import { dateAt, instantOf, MINUTES_A_DAY, type MinuteOfDay } from '#kernel/time-zone.ts';

/** Days of the week as ISO 8601 counts them: 1 is Monday, 7 is Sunday. */
export type Weekday = 1 | 2 | 3 | 4 | 5 | 6 | 7;

/**
 * Hours in which something is to be on: from `start` of each of the weekdays until `stop`, which is on the next day where it is not after `start`
 * (22:00 to 06:00; the same time twice means a whole day). Both are times on the clocks of the zone.
 */
export interface RunningHours {
  timeZone: string;
  weekdays: readonly Weekday[];
  start: MinuteOfDay;
  stop: MinuteOfDay;
}

interface Span {
  from: number;
  until: number;
}

/** Days that are looked through for a change: within them every weekday comes, also in a zone that left out a whole day. */
const LOOK_DAYS = 16;

/** Returns the hours of the day that begin on a date, if that is one of the weekdays. Empty where the clocks jump over all of them. */
function spanOf(hours: RunningHours, date: Temporal.PlainDate): Span | undefined {
  if (!hours.weekdays.includes(date.dayOfWeek as Weekday)) return undefined;
  const stop = hours.stop > hours.start ? hours.stop : hours.stop + MINUTES_A_DAY;
  const from = instantOf(date, hours.start, hours.timeZone).epochMilliseconds;
  const until = instantOf(date, stop, hours.timeZone).epochMilliseconds;
  return until > from ? { from, until } : undefined;
}

/** Spans that can matter from some days before an instant to some after it, in order; those that meet are one. */
function spansAround(hours: RunningHours, at: Date, first: number, last: number): Span[] {
  const today = dateAt(Temporal.Instant.fromEpochMilliseconds(at.getTime()), hours.timeZone);
  const spans: Span[] = [];
  for (let day = first; day <= last; day++) {
    const span = spanOf(hours, today.add({ days: day }));
    const before = spans.at(-1);
    if (!span) continue;
    if (before && span.from <= before.until) before.until = Math.max(before.until, span.until);
    else spans.push(span);
  }
  return spans;
}

/** Returns whether an instant lies in the hours. Their beginning does, their end does not. */
export function isOn(hours: RunningHours, at: Date): boolean {
  const time = at.getTime();
  return spansAround(hours, at, -2, 1).some((span) => span.from <= time && time < span.until);
}

/** Returns the next instant at which on and off change, or null if they never do. */
export function nextEdge(hours: RunningHours, after: Date): Date | null {
  const time = after.getTime();
  const next = edgesOf(spansAround(hours, after, -2, LOOK_DAYS)).find((edge) => edge > time);
  return next === undefined ? null : new Date(next);
}

/** Returns the last instant at which on and off changed, up to and including `at`. Null if they never do. */
export function lastEdge(hours: RunningHours, at: Date): Date | null {
  const time = at.getTime();
  const last = edgesOf(spansAround(hours, at, -LOOK_DAYS, 2)).findLast((edge) => edge <= time);
  return last === undefined ? null : new Date(last);
}

/** Beginnings and ends of spans. One that goes on through all that was looked through has none: all days of the week, all hours. */
const edgesOf = (spans: Span[]): number[] =>
  spans
    .filter((span) => span.until - span.from < LOOK_DAYS * MINUTES_A_DAY * 60_000)
    .flatMap((span) => [span.from, span.until]);
