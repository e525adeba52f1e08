import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkCron, nextRun } from '#kernel/cron.ts';
import { instantOf } from '#kernel/time-zone.ts';

const runs = (expression: string, zone: string, after: string, count: number) => {
  const found: string[] = [];
  for (let at = new Date(after); found.length < count; found.push(at.toISOString().slice(0, 16)))
    at = nextRun(expression, zone, at)!;
  return found;
};

describe('an expression', () => {
  test.each([
    '* * * * *',
    '*/5 * * * *',
    '5/15 * * * *',
    '0 8-18/2 * * MON-FRI',
    '0 0 1,15 JAN-MAR,dec *',
    '0 0 * * 7',
    '0 0 * * FRI-SUN',
    '0 0 ? * 1',
    '0 0 29 2 *',
    '  30   4 * * *  ',
    '@hourly',
    '@Daily',
    '@annually',
    '0 0 31 2 *',
  ])('may be %s', (expression) => expect(checkCron(expression)).toBeUndefined());

  test.each([
    ['', /five fields/],
    ['* * * *', /five fields/],
    ['* * * * * *', /five fields/],
    ['60 * * * *', /minute takes 0 to 59, not "60"/],
    ['0 24 * * *', /hour takes 0 to 23/],
    ['0 0 0 * *', /day of month takes 1 to 31, not "0"/],
    ['0 0 32 * *', /day of month takes 1 to 31, not "32"/],
    ['0 0 * 13 *', /month takes 1 to 12 or JAN to DEC/],
    ['0 0 * * 8', /day of week takes 0 to 7 or SUN to SAT/],
    ['0 0 * * MONDAY', /day of week/],
    ['0 MON * * *', /hour takes 0 to 23, not "MON"/],
    ['*/0 * * * *', /step of "\*\/0"/],
    ['*/60 * * * *', /step/],
    ['*/2/3 * * * *', /step/],
    ['1,,2 * * * *', /minute takes 0 to 59, not ""/],
    ['5-1 * * * *', /goes backwards/],
    ['1-2-3 * * * *', /no range/],
    ['? * * * *', /minute/],
    ['0 0 L * *', /day of month/],
    ['0 0 * * 5#2', /day of week/],
    ['-1 * * * *', /minute/],
    ['@reboot', /none of @yearly/],
    ['@toString', /none of @yearly/],
    ['2026-01-01T00:00:00', /five fields/],
  ])('may not be %j', (expression, message) => expect(checkCron(expression)).toMatch(message));

  test('is never a reason to throw', () => {
    const text = fc.oneof(
      fc.string(),
      fc
        .array(fc.stringMatching(/^[0-9*,/?LW#A-Za-z@-]{0,6}$/), { minLength: 4, maxLength: 6 })
        .map((all) => all.join(' ')),
    );
    fc.assert(
      fc.property(text, (expression) => void checkCron(expression)),
      { numRuns: 500 },
    );
  });
});

test('of two days that are given either will do; a star narrows the other', () => {
  expect(runs('0 0 13 * FRI', 'UTC', '2026-11-10T00:00Z', 3)).toEqual([
    '2026-11-13T00:00',
    '2026-11-20T00:00',
    '2026-11-27T00:00',
  ]);
  expect(runs('0 0 */2 * MON', 'UTC', '2026-11-01T00:00Z', 2)).toEqual(['2026-11-09T00:00', '2026-11-23T00:00']);
});

test('a time that the clocks jump over runs once at the first valid minute, one that comes twice runs once', () => {
  expect(runs('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', 2)).toEqual(['2026-03-29T01:00', '2026-03-30T00:30']);
  expect(runs('10,50 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', 2)).toEqual([
    '2026-03-29T01:00',
    '2026-03-30T00:10',
  ]);
  expect(runs('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', 2)).toEqual(['2026-10-25T00:30', '2026-10-26T01:30']);
  expect(runs('0 0 * * *', 'Africa/Cairo', '2026-04-23T12:00Z', 2)).toEqual(['2026-04-23T22:00', '2026-04-24T21:00']);
});

test('hours that are named by steps are named as well', () => {
  expect(runs('*/30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', 2)).toEqual([
    '2026-03-29T01:00',
    '2026-03-30T00:00',
  ]);
  expect(runs('0 */2 * * *', 'Europe/Berlin', '2026-10-24T21:00Z', 3)).toEqual([
    '2026-10-24T22:00',
    '2026-10-25T00:00',
    '2026-10-25T03:00',
  ]);
});

test('a day that comes only in some leap years is found', () => {
  expect(runs('0 12 29 2 *', 'UTC', '2097-01-01T00:00Z', 1)).toEqual(['2104-02-29T12:00']);
  expect(runs('0 12 29/1 2 ?', 'Europe/Paris', '2026-01-01T00:00Z', 1)).toEqual(['2028-02-29T11:00']);
});

test('what runs every few minutes goes on through an hour that comes twice', () => {
  expect(runs('*/30 * * * *', 'Europe/Berlin', '2026-10-24T23:59Z', 5)).toEqual([
    '2026-10-25T00:00',
    '2026-10-25T00:30',
    '2026-10-25T01:00',
    '2026-10-25T01:30',
    '2026-10-25T02:00',
  ]);
  expect(runs('0 * * * *', 'Europe/Berlin', '2026-03-29T00:00Z', 2)).toEqual(['2026-03-29T01:00', '2026-03-29T02:00']);
});

test('a day that no year has never comes, and is answered without a search', () => {
  const began = process.cpuUsage().user;
  for (let round = 0; round < 200; round++)
    for (const expression of ['0 0 31 2 *', '* * 31 2,4,6,9,11 */7', '0 0 30 2 ?'])
      expect(nextRun(expression, 'Europe/Berlin', new Date('2026-01-01T00:00Z'))).toBeNull();
  expect(process.cpuUsage().user - began).toBeLessThan(2_000_000);
});

test('a 29th of February on a Sunday is found, over a year that has none', () => {
  expect(runs('0 0 29 2 */7', 'UTC', '2026-01-01T00:00Z', 3)).toEqual([
    '2032-02-29T00:00',
    '2060-02-29T00:00',
    '2088-02-29T00:00',
  ]);
  expect(runs('0 0 29 2 */7', 'UTC', '2088-03-01T00:00Z', 1)).toEqual(['2128-02-29T00:00']);
});

test('a zone that is none is not taken for another', () => {
  expect(() => nextRun('* * * * *', 'Europe/Atlantis', new Date())).toThrow();
});

describe('over zones and years', () => {
  const zone = fc.constantFrom(...Intl.supportedValuesOf('timeZone'));
  // Until 2011, Pacific islands crossed the date line: a date without any time has no run (docs/decisions/0050-schedules-are-croners.md).
  const anyTime = fc.date({ min: new Date('2012-01-01'), max: new Date('2045-01-01'), noInvalidDate: true });

  test('a time of the day runs once a date, at the instant that its clocks show it first or jump over it', () => {
    fc.assert(
      fc.property(zone, anyTime, fc.integer({ min: 0, max: 1439 }), (timeZone, after, minute) => {
        const expression = `${minute % 60} ${Math.floor(minute / 60)} * * *`;
        const today = Temporal.Instant.fromEpochMilliseconds(after.getTime())
          .toZonedDateTimeISO(timeZone)
          .toPlainDate();
        const expected = [-1, 0, 1, 2, 3]
          .map((days) => instantOf(today.add({ days }), minute, timeZone).epochMilliseconds)
          .find((time) => time > after.getTime());
        expect(nextRun(expression, timeZone, after)?.toISOString()).toBe(new Date(expected!).toISOString());
      }),
      { numRuns: 400 },
    );
  });

  test('every expression of the grammar is answered, soon and after the instant that it was asked for', () => {
    const field = (min: number, max: number, ...more: string[]) => {
      const number = fc.integer({ min, max });
      const range = fc.tuple(number, number).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
      const start = fc.oneof(fc.constantFrom('*', ...more), number.map(String), range);
      const step = fc.integer({ min: 1, max }).map((by) => `/${by}`);
      const item = fc.tuple(start, fc.option(step, { nil: '' })).map((parts) => parts.join(''));
      return fc.array(item, { minLength: 1, maxLength: 3 }).map((items) => items.join(','));
    };
    const fields = [field(0, 59), field(0, 23), field(1, 31, '?'), field(1, 12, 'dec'), field(0, 7, '?', 'FRI-SUN')];
    const expressions = fc.tuple(...fields).map((all) => all.join(' '));
    let [slowest, at] = [0, ''];
    fc.assert(
      fc.property(expressions, zone, anyTime, (expression, timeZone, after) => {
        expect(checkCron(expression)).toBeUndefined();
        const began = process.cpuUsage().user;
        const next = nextRun(expression, timeZone, after);
        const took = process.cpuUsage().user - began;
        if (took > slowest) [slowest, at] = [took, expression];
        if (next) expect(next.getTime()).toBeGreaterThan(after.getTime());
      }),
      { numRuns: 1000 },
    );
    expect(slowest, at).toBeLessThan(1_000_000);
  });

  test('the next run is the first minute after an instant at which the clocks show what the expression names', () => {
    const step = fc.constantFrom(1, 2, 5, 7, 15, 30);
    fc.assert(
      fc.property(
        zone,
        anyTime,
        step,
        fc.subarray([1, 2, 3, 4, 5, 6, 7], { minLength: 1 }),
        (timeZone, after, every, days) => {
          const next = nextRun(`*/${every} * * * ${days.join(',')}`, timeZone, after)!;
          let at = Temporal.Instant.fromEpochMilliseconds((Math.floor(after.getTime() / 60_000) + 1) * 60_000);
          for (; ; at = at.add({ minutes: 1 })) {
            const shown = at.toZonedDateTimeISO(timeZone);
            if (shown.minute % every === 0 && days.includes(shown.dayOfWeek) && shown.second === 0) break;
          }
          expect(next.getTime()).toBe(at.epochMilliseconds);
        },
      ),
      { numRuns: 60 },
    );
  });
});
