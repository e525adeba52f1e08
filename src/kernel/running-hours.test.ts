import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isOn, lastEdge, nextEdge, type RunningHours, type Weekday } from '#kernel/running-hours.ts';

const EVERY_DAY: Weekday[] = [1, 2, 3, 4, 5, 6, 7];
const WORKDAYS: Weekday[] = [1, 2, 3, 4, 5];
const hours = (start: string, stop: string, timeZone = 'Europe/Berlin', weekdays = EVERY_DAY): RunningHours => {
  const minute = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
  return { timeZone, weekdays, start: minute(start), stop: minute(stop) };
};
const edges = (of: RunningHours, after: string, count: number) => {
  const found: string[] = [];
  for (let at = new Date(after); found.length < count; found.push(at.toISOString())) at = nextEdge(of, at)!;
  return found;
};

test('hours of workdays end on Friday and begin on Monday', () => {
  const office = hours('08:00', '19:00', 'Europe/Berlin', WORKDAYS);
  expect(edges(office, '2026-11-20T12:00Z', 3)).toEqual([
    '2026-11-20T18:00:00.000Z',
    '2026-11-23T07:00:00.000Z',
    '2026-11-23T18:00:00.000Z',
  ]);
  expect(isOn(office, new Date('2026-11-23T06:59:59.999Z'))).toBe(false);
  expect(isOn(office, new Date('2026-11-23T07:00:00Z'))).toBe(true);
  expect(isOn(office, new Date('2026-11-23T18:00:00Z'))).toBe(false);
});

test('hours over midnight belong to the day on which they begin', () => {
  const night = hours('22:00', '06:00', 'UTC', [5]);
  expect(edges(night, '2026-11-18T00:00Z', 2)).toEqual(['2026-11-20T22:00:00.000Z', '2026-11-21T06:00:00.000Z']);
});

test('the same time twice means whole days; all of them never end', () => {
  expect(nextEdge(hours('08:00', '08:00'), new Date('2026-11-20T00:00Z'))).toBeNull();
  expect(isOn(hours('08:00', '08:00'), new Date('2026-11-20T07:00Z'))).toBe(true);
  expect(edges(hours('08:00', '08:00', 'UTC', [6, 7]), '2026-11-18T00:00Z', 2)).toEqual([
    '2026-11-21T08:00:00.000Z',
    '2026-11-23T08:00:00.000Z',
  ]);
});

test('without a weekday it is never on', () => {
  expect(nextEdge(hours('08:00', '19:00', 'UTC', []), new Date())).toBeNull();
  expect(isOn(hours('08:00', '19:00', 'UTC', []), new Date())).toBe(false);
});

test('a start that the clocks jump over is at the jump, a stop that comes twice is the first', () => {
  expect(edges(hours('02:30', '10:00'), '2026-03-29T00:00Z', 1)).toEqual(['2026-03-29T01:00:00.000Z']);
  expect(edges(hours('01:00', '02:30'), '2026-10-24T23:30Z', 2)).toEqual([
    '2026-10-25T00:30:00.000Z',
    '2026-10-26T00:00:00.000Z',
  ]);
  // All of that night's hours are left out.
  expect(edges(hours('02:10', '02:50'), '2026-03-28T12:00Z', 2)).toEqual([
    '2026-03-30T00:10:00.000Z',
    '2026-03-30T00:50:00.000Z',
  ]);
});

describe('over zones and years', () => {
  const ZONES = [...Intl.supportedValuesOf('timeZone')];
  const anyHours = fc.record({
    timeZone: fc.constantFrom(...ZONES),
    weekdays: fc.subarray(EVERY_DAY),
    start: fc.integer({ min: 0, max: 1439 }),
    stop: fc.integer({ min: 0, max: 1439 }),
  });
  const anyTime = fc.date({ min: new Date('1975-01-01'), max: new Date('2045-01-01'), noInvalidDate: true });

  test('between an instant and its next edge nothing changes, and at the edge it does', () => {
    fc.assert(
      fc.property(anyHours, anyTime, fc.double({ min: 0, max: 1, noNaN: true }), (of, at, part) => {
        const on = isOn(of, at);
        const edge = nextEdge(of, at);
        const until = edge ?? new Date(at.getTime() + 15 * 86_400_000);
        const between = new Date(at.getTime() + Math.floor((until.getTime() - at.getTime() - 1) * part));
        expect(isOn(of, between)).toBe(on);
        if (!edge) return;
        expect(edge.getTime()).toBeGreaterThan(at.getTime());
        expect(isOn(of, new Date(edge.getTime() - 1))).toBe(on);
        expect(isOn(of, edge)).toBe(!on);
        expect(lastEdge(of, edge)).toEqual(edge);
        expect(lastEdge(of, new Date(edge.getTime() - 1))).toEqual(lastEdge(of, at));
      }),
      { numRuns: 400 },
    );
  });

  test('on days without a change of the clocks it is on exactly while they show its hours', () => {
    fc.assert(
      fc.property(anyHours, anyTime, (of, time) => {
        const at = Temporal.Instant.fromEpochMilliseconds(time.getTime()).toZonedDateTimeISO(of.timeZone);
        const offsets = [-48, -24, 0, 24, 48].map((hours) => at.add({ hours }).offsetNanoseconds);
        fc.pre(new Set(offsets).size === 1);
        const shown = at.hour * 60 + at.minute;
        const today = of.weekdays.includes(at.dayOfWeek as Weekday);
        const yesterday = of.weekdays.includes(at.subtract({ days: 1 }).dayOfWeek as Weekday);
        const expected =
          of.stop > of.start
            ? today && of.start <= shown && shown < of.stop
            : (today && of.start <= shown) || (yesterday && shown < of.stop);
        expect(isOn(of, time)).toBe(expected);
      }),
      { numRuns: 400 },
    );
  });

  test('one that is on for a part of every day changes as often as there are days, twice, whatever the clocks do', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'America/Santiago', 'Asia/Tehran'),
        fc.integer({ min: 1990, max: 2040 }),
        fc.integer({ min: 240, max: 600 }),
        (timeZone, year, start) => {
          const of: RunningHours = { timeZone, weekdays: EVERY_DAY, start, stop: start + 600 };
          let at = new Date(
            Temporal.PlainDate.from({ year, month: 1, day: 1 }).toZonedDateTime(timeZone).epochMilliseconds,
          );
          const end = Temporal.PlainDate.from({ year, month: 3, day: 1 }).toZonedDateTime(timeZone).epochMilliseconds;
          let count = 0;
          for (;;) {
            at = nextEdge(of, at)!;
            if (at.getTime() >= end) break;
            count++;
          }
          const days = Temporal.PlainDate.from({ year, month: 1, day: 1 }).until({ year, month: 3, day: 1 }).days;
          expect(count).toBe(2 * days);
        },
      ),
      { numRuns: 20 },
    );
  });
});
