import { invalidField } from '#kernel/errors.ts';

const RFC_3339 = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d+))?([Zz]|[+-]\d{2}:\d{2})$/;

/** By the number of digits of Unix time: how many microseconds one unit is. Each has its usual length and one more or less. */
const UNITS = [
  { digits: 11, micros: 1_000_000n, divisor: 1n },
  { digits: 14, micros: 1_000n, divisor: 1n },
  { digits: 17, micros: 1n, divisor: 1n },
  { digits: 20, micros: 1n, divisor: 1_000n },
];

/**
 * Reads a point in time as microseconds since 1970, which is as exact as the database is: RFC 3339 with up to nanoseconds, or
 * Unix digits in s, ms, µs or ns by their length (docs/contributing/rules.md 43). Undefined for none. Throws 400 naming the field.
 */
export function readTimestamp(field: string, text: string | null | undefined): number | undefined {
  if (text === undefined || text === null || text === '') return undefined;
  const micros = /^\d+$/.test(text) ? fromDigits(text) : fromRfc3339(text);
  if (micros === undefined)
    throw invalidField(field, 'must be RFC 3339 (2026-01-31T12:00:00.123456789Z) or Unix time in s, ms, µs or ns');
  return micros;
}

function fromDigits(digits: string): number | undefined {
  const unit = UNITS.find((one) => digits.length <= one.digits);
  return unit && Number((BigInt(digits) * unit.micros) / unit.divisor);
}

function fromRfc3339(text: string): number | undefined {
  // A plus sign that was not encoded arrives as a blank.
  const match = RFC_3339.exec(text.replace(/ (?=\d{2}:\d{2}$)/, '+'));
  if (!match) return undefined;
  const [, date, time, fraction = '', zone] = match;
  const millis = Date.parse(`${date}T${time}${zone!.toUpperCase()}`);
  // `Date` turns 30 February into 1 March; such a day is no date.
  const day = Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(millis) || Number.isNaN(day) || new Date(day).toISOString().slice(0, 10) !== date) return undefined;
  return millis * 1000 + Number(fraction.slice(0, 6).padEnd(6, '0'));
}
