/** Source of random numbers that a seed repeats (mulberry32). */
export interface Random {
  /** Returns a number from 0 to below 1. */
  next(): number;
  /** Returns a whole number from 0 to below `count`. */
  below(count: number): number;
  pick<T>(list: readonly T[]): T;
}

export function makeRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (count: number) => Math.floor(next() * count);
  return { next, below, pick: (list) => list[below(list.length)]! };
}

/** Returns the seed of a random test: SEED, else a new one each time. */
export const seedOf = (): number => Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

/** Selection of the steps of a long walk: `first`, and each `step`-th from there. */
export interface Stride {
  first: number;
  step: number;
  /** Seed that a failure prints: SEED repeats it. */
  seed: number;
}

/** Returns every step in the soak, else each n-th from a start that the seed chooses: a few runs cover all. */
export function strideOf(every: number): Stride {
  const seed = seedOf();
  console.log(`SEED=${seed}`);
  const step = process.env.SOAK ? 1 : every;
  return { first: 1 + (seed % step), step, seed };
}

/**
 * Returns how many exchanges a proxy is fuzzed with, and the one that PROXY_FUZZ_ONLY names. The count is PROXY_FUZZ, else `slow` in CI and
 * the soak, else 2,000.
 */
export function proxyFuzz(slow: number): { count: number; only: string | undefined } {
  const { PROXY_FUZZ: given, PROXY_FUZZ_ONLY: only, CI, SOAK } = process.env;
  return { count: Number(given ?? (CI || SOAK ? slow : 2_000)), only };
}
