/** Upper bounds of the classes that requests are counted in by their time, in milliseconds; the last class has no bound. */
export const LATENCY_BOUNDS_MS = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000];
