import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readTimestamp } from '#resources/event/timestamp.ts';

const NOON = Date.parse('2026-01-31T12:00:00Z') * 1000;

describe('a timestamp', () => {
  test.each([
    ['2026-01-31T12:00:00Z', NOON],
    ['2026-01-31t12:00:00z', NOON],
    ['2026-01-31T13:30:00+01:30', NOON],
    ['2026-01-31T13:30:00 01:30', NOON],
    ['2026-01-31T07:00:00-05:00', NOON],
    ['2026-01-31T12:00:00.5Z', NOON + 500_000],
    ['2026-01-31T12:00:00.123456789Z', NOON + 123_456],
    [String(NOON / 1_000_000), NOON],
    [String(NOON / 1_000), NOON],
    [String(NOON), NOON],
    [`${NOON}789`, NOON],
    ['0', 0],
    ['', undefined],
    [null, undefined],
    [undefined, undefined],
  ])('%s is read as what it says', (text, micros) => expect(readTimestamp('fromTimestamp', text)).toBe(micros));

  test.each([
    'yesterday',
    '2026-01-31',
    '2026-02-30T00:00:00Z',
    '2026-01-31T25:00:00Z',
    '2026-01-31T12:00:00',
    '-5',
    '1.5',
    '1'.repeat(21),
  ])('%s is 400 and says what is right', (text) =>
    expect(() => readTimestamp('fromTimestamp', text)).toThrow(/^fromTimestamp: must be RFC 3339/),
  );

  test('means the same moment in every unit', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1_000_000_000, max: 9_999_999_999 }), (seconds) => {
        const readings = ['', '000', '000000', '000000000'].map((zeros) => readTimestamp('t', `${seconds}${zeros}`));
        expect(readings).toEqual(Array(4).fill(seconds * 1_000_000));
        expect(readTimestamp('t', new Date(seconds * 1000).toISOString())).toBe(seconds * 1_000_000);
      }),
    );
  });
});
