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

/** Days that are looked through for the next change: within them every weekday comes, and a zone that left out a whole day as well. */
const LOOK_AHEAD_DAYS = 16;

/** The hours of the day that begin on a date, unless it is none of the weekdays. Empty where the clocks jump over all of them. */
function spanOf(hours: RunningHours, date: Temporal.PlainDate): Span | undefined {
  if (!hours.weekdays.includes(date.dayOfWeek as Weekday)) return undefined;
  const stop = hours.stop > hours.start ? hours.stop : hours.stop + MINUTES_A_DAY;
  const from = instantOf(date, hours.start, hours.timeZone).epochMilliseconds;
  const until = instantOf(date, stop, hours.timeZone).epochMilliseconds;
  return until > from ? { from, until } : undefined;
}

/** Spans that can matter around an instant, in order; those that meet are one. */
function spansAround(hours: RunningHours, at: Date, days: number): Span[] {
  const today = dateAt(Temporal.Instant.fromEpochMilliseconds(at.getTime()), hours.timeZone);
  const spans: Span[] = [];
  for (let day = -2; day <= days; day++) {
    const span = spanOf(hours, today.add({ days: day }));
    const last = spans.at(-1);
    if (!span) continue;
    if (last && span.from <= last.until) last.until = Math.max(last.until, span.until);
    else spans.push(span);
  }
  return spans;
}

/** Whether an instant lies in the hours. Their beginning does, their end does not. */
export function isOn(hours: RunningHours, at: Date): boolean {
  const time = at.getTime();
  return spansAround(hours, at, 1).some((span) => span.from <= time && time < span.until);
}

/** The next instant at which on and off change, or null where they never do. */
export function nextEdge(hours: RunningHours, after: Date): Date | null {
  const time = after.getTime();
  const spans = spansAround(hours, after, LOOK_AHEAD_DAYS);
  // One that goes on to the end of what was looked through never ends: all days of the week, all hours.
  if (spans.length === 1 && spans[0]!.until - spans[0]!.from > LOOK_AHEAD_DAYS * MINUTES_A_DAY * 60_000) return null;
  const edges = spans.flatMap((span) => [span.from, span.until]);
  const next = edges.find((edge) => edge > time);
  return next === undefined ? null : new Date(next);
}
