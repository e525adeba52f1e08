import { RuntimeError } from '#runtimes/runtime.ts';

/** The largest output file of an execution that is read: outputs become variables, which are small (`TaskEnd.output`). */
export const MAX_OUTPUT_BYTES = 1 << 20;

/** Why an output file of this size is not read. */
export const outputTooLarge = (path: string, bytes: number): RuntimeError =>
  new RuntimeError(
    'failed',
    `The command ended well, but its output file ${path} has ${bytes} bytes: ${MAX_OUTPUT_BYTES} (1 MiB) are read at most.`,
  );
