import { fork, type ChildProcess } from 'node:child_process';
import path from 'node:path';

/** Message of the parent to a part, and its reply. */
interface Question {
  id: number;
  name: string;
  argument: unknown;
}
type Reply = { id: number; value?: unknown; error?: string };

/** Function that a part offers by name. The caller decides on the types of its argument and result. */
type Action = (argument: never) => unknown;

/** Process of a measurement, which runs the actions that its file offers. */
export interface Part {
  child: ChildProcess;
  ask<T = void>(name: string, argument?: unknown): Promise<T>;
  end(): Promise<void>;
}

/** Starts a file of this folder that calls `offer`. Its standard output is discarded, because the service writes its log there. */
export function startPart(file: string, nodeArguments: string[] = []): Part {
  const child = fork(path.join(import.meta.dirname, file), {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: nodeArguments,
  });
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let last = 0;
  child.on('message', ({ id, value, error }: Reply) => {
    const asked = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) asked?.resolve(value);
    else asked?.reject(new Error(`${file}: ${error}`));
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.once('exit', (code) => {
    for (const asked of waiting.values()) asked.reject(new Error(`${file} has ended with status ${code}.`));
  });
  return {
    child,
    ask: <T>(name: string, argument?: unknown) =>
      new Promise<T>((resolve, reject) => {
        waiting.set(++last, { resolve: (value) => resolve(value as T), reject });
        child.send({ id: last, name, argument } satisfies Question);
      }),
    end: async () => {
      child.disconnect();
      await ended;
    },
  };
}

/** Answers the messages of the parent. When the parent disconnects, `close` is called and the process ends. */
export function offer(given: Record<string, Action>, close: () => Promise<void>): void {
  const actions: Record<string, Action> = { ...given, processorTime };
  process.on('message', async ({ id, name, argument }: Question) => {
    try {
      process.send!({ id, value: await actions[name]!(argument as never) } satisfies Reply);
    } catch (error) {
      process.send!({ id, error: String((error as Error).stack) } satisfies Reply);
    }
  });
  process.once('disconnect', () => void close().then(() => process.exit(0)));
}

/** Microseconds of processor time that this process has used. */
function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Nearest-rank quantile, 0.5 for the median. */
export const quantile = (values: number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]!;

export const median = (values: number[]): number => quantile(values, 0.5);
