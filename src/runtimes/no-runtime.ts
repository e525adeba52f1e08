import { RuntimeError, type Runtime } from '#runtimes/runtime.ts';

/** For a process without runtimes: a clear answer instead of a log that looks empty. */
export const noRuntime = (): Promise<Runtime> =>
  Promise.reject(new RuntimeError('unreachable', 'this process has no runtimes; ask one with the role worker or all.'));
