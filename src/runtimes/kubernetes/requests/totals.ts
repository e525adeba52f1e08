import type { Tally } from '#runtimes/tools/tally.ts';
import { toClasses } from './histogram.ts';

/** Requests to one backend since the start of a gateway's process. */
export interface Totals {
  /** By the hundreds of their status, 1xx to 5xx. */
  statuses: number[];
  /** By upper bounds of their time in seconds, each with all that took no longer. */
  buckets: Map<number, number>;
}

/** Counters of one process of a gateway. */
export interface Reading {
  /** Start of the process in seconds since 1970; null where it is not told. */
  startedAt: number | null;
  /** Names of the backends that were looked for. */
  names: ReadonlySet<string>;
  /** Requests by the names of backends; those without any are not there. */
  backends: Map<string, Totals>;
}

/** Bounds of a histogram at most. */
const MOST_BOUNDS = 200;

export const emptyTotals = (): Totals => ({ statuses: [0, 0, 0, 0, 0], buckets: new Map() });

/** Adds answers of a status; a status that HTTP does not have is left out. */
export function addStatus({ statuses }: Totals, status: number, count: number): void {
  const hundreds = Math.floor(status / 100);
  if (hundreds >= 1 && hundreds <= statuses.length) statuses[hundreds - 1]! += whole(count);
}

export function addBucket({ buckets }: Totals, bound: number, count: number): void {
  if (Number.isNaN(bound) || (buckets.size >= MOST_BOUNDS && !buckets.has(bound))) return;
  buckets.set(bound, (buckets.get(bound) ?? 0) + whole(count));
}

const whole = (count: number): number => Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.round(count) || 0));

/**
 * Returns the requests to backends between two readings of a process, or since its start without an earlier one. A backend that was not
 * looked for before, such as that of a service that was stopped, only begins to be counted: its counters may be old.
 */
export function tallyOf(names: string[], now: Reading, before: Reading | null): Tally {
  const earlier = before !== null && before.startedAt === now.startedAt ? before : null;
  const sum = emptyTotals();
  for (const name of names) {
    const totals = now.backends.get(name);
    const isKnown = earlier === null || earlier.names.has(name);
    if (totals && isKnown) addDifference(sum, totals, earlier?.backends.get(name) ?? emptyTotals());
  }
  const histogram = [...sum.buckets].toSorted(([one], [other]) => one - other);
  return { statuses: sum.statuses, latencies: toClasses(histogram) };
}

/** Adds what was counted since. A counter that is lower than before began anew. */
function addDifference(sum: Totals, now: Totals, before: Totals): void {
  const isAnew =
    now.statuses.some((count, n) => count < before.statuses[n]!) ||
    [...before.buckets].some(([bound, count]) => (now.buckets.get(bound) ?? 0) < count);
  const from = isAnew ? emptyTotals() : before;
  now.statuses.forEach((count, n) => (sum.statuses[n]! += count - from.statuses[n]!));
  for (const [bound, count] of now.buckets) addBucket(sum, bound, count - (from.buckets.get(bound) ?? 0));
}

export function addTally(sum: Tally, { statuses, latencies }: Tally): void {
  statuses.forEach((count, n) => (sum.statuses[n]! += count));
  latencies.forEach((count, n) => (sum.latencies[n]! += count));
}
