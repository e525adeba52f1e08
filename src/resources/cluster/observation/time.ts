import { invalidField } from '#kernel/errors.ts';

/** Milliseconds of a Unix time by its number of digits: seconds, ms, µs or ns (docs/contributing/rules.md 43). */
const SCALE: [digits: number, perMillisecond: number][] = [
  [10, 0.001],
  [13, 1],
  [16, 1_000],
  [19, 1_000_000],
];

/** Parses a moment in RFC 3339 or as Unix digits, with an optional fraction. Throws 400 that names the field. */
export function parseTime(field: string, text: string): Date {
  const digits = /^(\d{1,19})(\.\d+)?$/.exec(text);
  const [, scale] = SCALE.find(([length]) => (digits?.[1]?.length ?? 0) <= length) ?? [];
  const time = digits && scale ? new Date(Number(text) / scale) : rfc3339(text);
  if (!time || Number.isNaN(time.getTime()))
    throw invalidField(field, 'must be a time: RFC 3339, or Unix digits in s, ms, µs or ns');
  return time;
}

const rfc3339 = (text: string): Date | undefined =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text) ? new Date(text) : undefined;

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Longest length of time, a century: further back there is nothing, and no date either. */
const MAX_DURATION_MS = 36_500 * UNITS['d']!;

/** Parses a length of time such as `5m` or bare seconds, in milliseconds. Throws 400 that names the field. */
export function parseDuration(field: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)?$/.exec(text);
  if (!match) throw invalidField(field, 'must be a length of time such as 30s, 5m or 1h');
  const duration = Number(match[1]) * UNITS[match[2] ?? 's']!;
  if (duration > MAX_DURATION_MS) throw invalidField(field, 'must be a length of time of at most 36500d');
  return duration;
}
