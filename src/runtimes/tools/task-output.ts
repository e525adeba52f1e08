import { RuntimeError } from '#runtimes/runtime.ts';

/** Size limit in bytes of an execution's output file: outputs become variables, which are small (`TaskEnd.output`). */
export const MAX_OUTPUT_BYTES = 1 << 20;

/** Returns the error for an output file above the limit. */
export const outputTooLarge = (path: string, bytes: number): RuntimeError =>
  new RuntimeError(
    'failed',
    `The command ended well, but its output file ${path} has ${bytes} bytes: ${MAX_OUTPUT_BYTES} (1 MiB) are read at most.`,
  );
