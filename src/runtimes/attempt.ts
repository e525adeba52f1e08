import { RuntimeError, type RuntimeContext } from '#runtimes/runtime.ts';

type Acting = Pick<RuntimeContext, 'signal' | 'attempt'>;

/** Returns the number of the calling attempt; 0 if no other attempt can follow. */
export const attemptNumber = ({ attempt }: Acting): number => attempt?.number ?? 0;

/** Returns whether another attempt may be acting in place of the caller. Reads `aborted` first, which compares the lease with the clock. */
export const isReplaced = ({ signal, attempt }: Acting): boolean =>
  (signal.aborted && signal.reason === 'lost') || attempt?.holds() === false;

/** Throws RuntimeError `aborted` if another attempt may be acting in place of the caller. Call it before each change after an abort. */
export function requireHeld(context: Acting): void {
  if (isReplaced(context))
    throw new RuntimeError('aborted', 'Another attempt goes on with this deployment.', context.signal.reason);
}
