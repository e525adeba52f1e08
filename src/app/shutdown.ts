import type { Logger } from 'pino';

/** What is undone when the process ends, by a name for the log. */
export interface ShutdownStep {
  name: string;
  run(): Promise<unknown>;
}

/** Seconds that all of it may take: supervisors give a process 30 s before they kill it. */
const WHOLE_MS = 25_000;
/** What each step has in any case, however long those before it took: the last one ends the embedded PostgreSQL. */
const LEAST_MS = 2_000;

/**
 * Undoes the steps in the reverse order of their making. One that hangs, since something outside does not answer, is left behind and named in the
 * log: what it would have given back is taken over when its lease ends. Throws what the first step that fails throws, when all were run.
 */
export async function shutDown(
  steps: ShutdownStep[],
  log: Logger,
  { wholeMs = WHOLE_MS, leastMs = LEAST_MS } = {},
): Promise<void> {
  const end = performance.now() + wholeMs - steps.length * leastMs;
  const failures: unknown[] = [];
  for (const { name, run } of steps.toReversed()) {
    const ms = Math.max(end - performance.now(), leastMs);
    try {
      if (!(await endsWithin(ms, run())))
        log.warn({ step: name, ms: Math.round(ms) }, 'a step of the shutdown hangs: it is left behind');
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(() => resolve(false), ms);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
