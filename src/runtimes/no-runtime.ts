import { RuntimeError, type Runtime } from '#runtimes/runtime.ts';

/** Provider of a process without runtimes: its error replaces a log that would look empty. */
export const noRuntime = (): Promise<Runtime> =>
  Promise.reject(new RuntimeError('unreachable', 'this process has no runtimes; ask one with the role worker or all.'));
