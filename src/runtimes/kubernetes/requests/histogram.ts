import { LATENCY_BOUNDS_MS } from '#kernel/latency-classes.ts';

/** Numbers of requests that took at most as long as each bound, in seconds, smallest first. The last bound is Infinity. */
export type Histogram = readonly (readonly [bound: number, count: number])[];

/**
 * Returns numbers of requests in the classes of `LATENCY_BOUNDS_MS`: those of a bucket are spread evenly over it, as quantiles of Prometheus
 * take them to be. What took longer than the last bound counts in the class behind that bound.
 */
export function toClasses(histogram: Histogram): number[] {
  const upTo = [...LATENCY_BOUNDS_MS, Infinity].map((bound) => Math.round(countUpTo(histogram, bound / 1000)));
  return upTo.map((count, n) => count - (upTo[n - 1] ?? 0));
}

function countUpTo(histogram: Histogram, seconds: number): number {
  let [low, before] = [0, 0];
  for (const [bound, count] of histogram) {
    if (bound === Infinity) return seconds > low ? Math.max(before, count) : before;
    const within = Math.max(count, before);
    if (seconds <= bound) return bound <= low ? within : before + ((within - before) * (seconds - low)) / (bound - low);
    [low, before] = [bound, within];
  }
  return before;
}
