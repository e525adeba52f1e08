/** Time of day on a clock, in minutes after midnight. */
export type MinuteOfDay = number;

export const MINUTES_A_DAY = 1440;

/** Names of zones only: an offset such as `+02:00` knows no summer time, and `Intl` would take it. */
const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/;

/** Returns the zone's name in its usual spelling (`europe/paris` is `Europe/Paris`), or undefined if there is no such IANA zone. */
export function timeZoneNamed(name: string): string | undefined {
  if (!ZONE_NAME.test(name)) return undefined;
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name).timeZoneId;
  } catch {
    return undefined;
  }
}

/**
 * Returns the moment when the clocks of a zone show a time of a date. A skipped time is the moment of the jump, the first valid one after
 * it; a repeated time is the first of the two.
 */
export function instantOf(date: Temporal.PlainDate, minute: MinuteOfDay, timeZone: string): Temporal.Instant {
  const wall = date
    .toPlainDateTime()
    .add({ days: Math.floor(minute / MINUTES_A_DAY), minutes: minute % MINUTES_A_DAY });
  const shown = wall.toZonedDateTime(timeZone, { disambiguation: 'earlier' });
  if (shown.toPlainDateTime().equals(wall)) return shown.toInstant();
  return shown.getTimeZoneTransition('next')!.toInstant();
}

/** Returns the date that a zone's calendars show at an instant. */
export const dateAt = (at: Temporal.Instant, timeZone: string): Temporal.PlainDate =>
  at.toZonedDateTimeISO(timeZone).toPlainDate();
