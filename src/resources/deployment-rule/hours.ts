import { invalidField } from '#kernel/errors.ts';
import { nextEdge, type RunningHours, type Weekday } from '#kernel/running-hours.ts';
import { timeZoneNamed } from '#kernel/time-zone.ts';

export const WEEKDAYS = ['MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY', 'SATURDAY', 'SUNDAY'] as const;

/** Running hours of an environment, as bodies and answers have them. */
export interface ScheduleInput {
  auto_stop?: boolean;
  timezone: string;
  start_time: string;
  stop_time: string;
  weekdays: string[];
}

export interface ScheduleColumns {
  auto_stop: boolean;
  timezone: string;
  start_time: Date;
  stop_time: Date;
  weekdays: string[];
}

/**
 * Returns the columns of a schedule; 400 for an unknown time zone, or with `auto_stop` and no day. Without a day, stopped services never
 * run again.
 */
export function toSchedule(input: ScheduleInput): ScheduleColumns {
  const timezone = timeZoneNamed(input.timezone);
  if (!timezone) throw invalidField('timezone', 'names no IANA time zone, such as Europe/Paris or UTC');
  const auto_stop = input.auto_stop ?? false;
  if (auto_stop && input.weekdays.length === 0)
    throw invalidField('weekdays', 'needs at least one day with auto_stop: without one nothing would ever run again');
  return {
    auto_stop,
    timezone,
    start_time: wallTime(input.start_time),
    stop_time: wallTime(input.stop_time),
    weekdays: WEEKDAYS.filter((day) => input.weekdays.includes(day)),
  };
}

/**
 * A time on the clocks of the schedule's zone, whose digits count as they are written: existing clients send 08:00 in any zone as
 * `1970-01-01T08:00:00.000Z`, whatever the offset.
 */
function wallTime(value: string): Date {
  const wall = Temporal.PlainDateTime.from(value.replace(/(z|[+-]\d\d:?\d\d)$/i, ''));
  return new Date(wall.toZonedDateTime('UTC').epochMilliseconds);
}

const minuteOf = (time: Date): number => time.getUTCHours() * 60 + time.getUTCMinutes();

export const toHours = (row: ScheduleColumns): RunningHours => ({
  timeZone: row.timezone,
  weekdays: row.weekdays.map((day) => (WEEKDAYS.indexOf(day as (typeof WEEKDAYS)[number]) + 1) as Weekday),
  start: minuteOf(row.start_time),
  stop: minuteOf(row.stop_time),
});

/** Returns the next time at which the schedule starts or stops something: everything stays as it is until then. */
export const nextLook = (row: ScheduleColumns, now: Date): Date | null =>
  row.auto_stop ? nextEdge(toHours(row), now) : null;

export const toScheduleView = (row: ScheduleColumns) => ({
  auto_stop: row.auto_stop,
  timezone: row.timezone,
  start_time: row.start_time.toISOString(),
  stop_time: row.stop_time.toISOString(),
  weekdays: row.weekdays,
});
