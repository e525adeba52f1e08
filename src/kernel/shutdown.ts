import type { Logger } from 'pino';
import { endsWithin } from '#kernel/deadline.ts';

/** Step of the shutdown, with a name for the log. */
export interface ShutdownStep {
  name: string;
  run(): Promise<unknown>;
  /** Milliseconds that the step has in any case; LEAST_MS if absent. */
  leastMs?: number;
}

/** Milliseconds for all steps together: supervisors give a process 30 s before they kill it. */
const WHOLE_MS = 27_000;
/**
 * Milliseconds that each step has in any case, however long those before it took. The first one, which ends the work in the background, has what
 * all of them leave: more than a call that hangs has to come back (UNWIND_SECONDS in src/kernel/deadline.ts).
 */
const LEAST_MS = 1_000;

/**
 * Undoes the steps in the reverse order of their making. One that hangs, since something outside does not answer, is left behind and named in the
 * log: what it would have given back is taken over when its lease ends. Throws what the first step that fails throws, when all were run.
 */
export async function shutDown(
  steps: ShutdownStep[],
  log: Logger,
  { wholeMs = WHOLE_MS, leastMs = LEAST_MS } = {},
): Promise<void> {
  const leastOf = (step: ShutdownStep) => step.leastMs ?? leastMs;
  const end = performance.now() + wholeMs - steps.reduce((sum, step) => sum + leastOf(step), 0);
  const failures: unknown[] = [];
  for (const step of steps.toReversed()) {
    const { name, run } = step;
    const ms = Math.max(end - performance.now(), 0) + leastOf(step);
    try {
      if (!(await endsWithin(ms, run())))
        log.warn({ step: name, ms: Math.round(ms) }, 'a step of the shutdown hangs: it is left behind');
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
