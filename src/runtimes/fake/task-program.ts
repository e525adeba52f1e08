/**
 * Step of a small program that runs its steps and ends. The fake runtime pretends to run it in place of a user's command, and the runtime
 * contract puts it into the image that every real runtime runs (as `application.ts`). It imports nothing, because the contract writes it
 * into an image with its types stripped.
 */
export type TaskStep =
  /** Writes a line. */
  | { say: string; stream?: 'stdout' | 'stderr' }
  /** Writes the value of a variable as JSON. */
  | { variable: string }
  /** Writes the content of a file as JSON. */
  | { read: string }
  | { write: string; text: string }
  /** Writes a file of that many bytes. */
  | { fill: string; bytes: number }
  /** Waits that many milliseconds. */
  | { wait: number }
  /** Writes the answer of an address. */
  | { fetch: string }
  /** Writes the arguments before the steps, as JSON. */
  | { arguments: true }
  /** Writes a value that differs between two processes. */
  | { process: true }
  /** Leaves a child process that counts in a file, ten times a second, until it is killed. Waits until it has begun. */
  | { countInChild: string }
  | { exit: number };

export interface TaskHost {
  environment: Record<string, string | undefined>;
  arguments: string[];
  process: string;
  readFile(path: string): string;
  writeFile(path: string, text: string): void;
  say(text: string, stream: 'stdout' | 'stderr'): void;
  wait(ms: number): Promise<void>;
  fetch(url: string): Promise<string>;
  countInChild(path: string): Promise<void>;
}

/** Runs the steps and returns the exit status: that of an `exit` step, 1 after a failure, else 0. */
export async function runSteps(steps: TaskStep[], host: TaskHost): Promise<number> {
  for (const step of steps) {
    if ('exit' in step) return step.exit;
    try {
      await runStep(step, host);
    } catch (error) {
      host.say(error instanceof Error ? error.message : String(error), 'stderr');
      return 1;
    }
  }
  return 0;
}

async function runStep(step: Exclude<TaskStep, { exit: number }>, host: TaskHost): Promise<void> {
  if ('say' in step) host.say(step.say, step.stream ?? 'stdout');
  else if ('variable' in step) host.say(JSON.stringify(host.environment[step.variable] ?? null), 'stdout');
  else if ('read' in step) host.say(JSON.stringify(host.readFile(step.read)), 'stdout');
  else if ('write' in step) host.writeFile(step.write, step.text);
  else if ('fill' in step) host.writeFile(step.fill, 'x'.repeat(step.bytes));
  else if ('wait' in step) await host.wait(step.wait);
  else if ('fetch' in step) host.say(await host.fetch(step.fetch), 'stdout');
  else if ('process' in step) host.say(`process ${host.process}`, 'stdout');
  else if ('countInChild' in step) await host.countInChild(step.countInChild);
  else host.say(JSON.stringify(host.arguments), 'stdout');
}
