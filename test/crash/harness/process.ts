import { spawn, type ChildProcess } from 'node:child_process';
import { bundledProgram } from '#test/harness/bundled-program.ts';

/** Length of the kept output of a process, in characters: enough to see why it ended. */
const KEPT_OUTPUT = 100_000;

/** Child process that a test kills, freezes and wakes. */
export interface ChildOfTest {
  readonly pid: number;
  readonly running: boolean;
  /** Output on both streams. */
  readonly output: string;
  /** Resolves with status and signal when the process is gone. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Resolves with the output so far once it matches; rejects if the process ends before. */
  says(pattern: RegExp): Promise<string>;
  /** Sends SIGKILL and waits for the end. */
  kill(): Promise<void>;
  /** Sends SIGTERM, waits for the end, and returns the exit status. */
  terminate(): Promise<number | null>;
  /** Sends SIGSTOP: the process does nothing until it is woken. */
  freeze(): void;
  wake(): void;
}

/** Starts `node FILE ARGS` with exactly this environment; `input` is its standard input. */
export function startChild(
  file: string,
  args: string[],
  env: NodeJS.ProcessEnv,
  input?: string,
  onEnd: () => void = () => undefined,
): ChildOfTest {
  const child: ChildProcess = spawn(process.execPath, [file, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] });
  let output = '';
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-KEPT_OUTPUT);
      for (const look of waiting) look();
    });
  let running = true;
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.on('close', (code, signal) => {
      running = false;
      onEnd();
      resolve({ code, signal });
    }),
  );
  // The test may kill it before it reads.
  child.stdin!.on('error', () => undefined);
  child.stdin!.end(input ?? '');
  return {
    pid: child.pid!,
    get running() {
      return running;
    },
    get output() {
      return output;
    },
    ended,
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (!pattern.test(output)) return;
          waiting.delete(look);
          resolve(output);
        };
        waiting.add(look);
        look();
        void ended.then(({ code, signal }) => {
          waiting.delete(look);
          reject(new Error(`It ended (${signal ?? code}) without saying ${pattern}:\n${output.slice(-4000)}`));
        });
      }),
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
    terminate: async () => {
      child.kill('SIGTERM');
      return (await ended).code;
    },
    freeze: () => void child.kill('SIGSTOP'),
    wake: () => void child.kill('SIGCONT'),
  };
}

/** Running process of the program, with its addresses. */
export interface ServiceProcess extends ChildOfTest {
  name: string;
  role: 'all' | 'api' | 'worker';
  /** URL of the API; null without one (role worker). */
  url: string | null;
  operationsUrl: string;
}

/** Starts the real program, bundled as `npm start` runs it, and returns it once it is ready. */
export async function startService(
  name: string,
  role: ServiceProcess['role'],
  env: NodeJS.ProcessEnv,
  onStart: (child: ChildOfTest) => void = () => undefined,
): Promise<ServiceProcess> {
  const child = startChild(await bundledProgram(), ['start'], { ...env, QUARTERDECK_ROLE: role });
  onStart(child);
  const text = await child.says(/token {8}in .*\n/);
  const url = /API +(http\S+)/.exec(text)?.[1] ?? null;
  const operationsUrl = /operations +(http\S+)/.exec(text)![1]!;
  // Getters stay getters: they read the current state of the child.
  return Object.create(child, {
    name: { value: name },
    role: { value: role },
    url: { value: url },
    operationsUrl: { value: operationsUrl },
  }) as ServiceProcess;
}
