import { expect, test } from 'vitest';
import { instantOf, timeZoneNamed } from '#kernel/time-zone.ts';

const at = (date: string, time: string, zone: string) => {
  const [hours, minutes] = time.split(':').map(Number);
  return new Date(
    instantOf(Temporal.PlainDate.from(date), hours! * 60 + minutes!, zone).epochMilliseconds,
  ).toISOString();
};

test('a zone is one of the IANA names, in whatever case, and never an offset', () => {
  expect(timeZoneNamed('Europe/Paris')).toBe('Europe/Paris');
  expect(timeZoneNamed('america/new_york')).toBe('America/New_York');
  expect(timeZoneNamed('UTC')).toBe('UTC');
  expect(timeZoneNamed('Etc/GMT+5')).toBe('Etc/GMT+5');
  for (const wrong of ['', '+02:00', '-05', 'Z', 'Europe/Atlantis', 'Europe', '2026-01-01T00:00[Europe/Paris]', ' UTC'])
    expect(timeZoneNamed(wrong), wrong).toBeUndefined();
});

test('a time that the clocks jump over is the moment of the jump, one that they show twice is the first', () => {
  expect(at('2026-03-29', '02:30', 'Europe/Berlin')).toBe('2026-03-29T01:00:00.000Z');
  expect(at('2026-03-29', '03:00', 'Europe/Berlin')).toBe('2026-03-29T01:00:00.000Z');
  expect(at('2026-10-25', '02:30', 'Europe/Berlin')).toBe('2026-10-25T00:30:00.000Z');
  // Half an hour only.
  expect(at('2026-10-04', '02:15', 'Australia/Lord_Howe')).toBe('2026-10-03T15:30:00.000Z');
  // A midnight that is left out, and a whole day.
  expect(at('2026-04-24', '00:00', 'Africa/Cairo')).toBe('2026-04-23T22:00:00.000Z');
  expect(at('2011-12-30', '08:00', 'Pacific/Apia')).toBe('2011-12-30T10:00:00.000Z');
});

test('minutes after the end of a day are those of the next', () => {
  expect(at('2026-01-01', '30:00', 'UTC')).toBe('2026-01-02T06:00:00.000Z');
});
