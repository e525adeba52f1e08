import { RuntimeError, type RuntimeContext } from '#runtimes/runtime.ts';

type Acting = Pick<RuntimeContext, 'signal' | 'attempt'>;

/** Number of the attempt that calls, 0 where no other one can follow it. */
export const attemptNumber = ({ attempt }: Acting): number => attempt?.number ?? 0;

/** Whether another attempt may be at work in place of the caller. Reads `aborted` first, which compares the lease with the clock. */
export const isReplaced = ({ signal, attempt }: Acting): boolean =>
  (signal.aborted && signal.reason === 'lost') || attempt?.holds() === false;

/** Throws RuntimeError `aborted` where another attempt may be at work in place of the caller: to be called before each change after an abort. */
export function requireHeld(context: Acting): void {
  if (isReplaced(context))
    throw new RuntimeError('aborted', 'Another attempt goes on with this deployment.', context.signal.reason);
}
