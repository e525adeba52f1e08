import { resolve } from 'node:path';
import type { TaskEnd, TaskSpec } from '#runtimes/runtime.ts';
import { runSteps } from '#runtimes/fake/task-program.ts';
import type { TaskHost, TaskStep } from '#runtimes/fake/task-program.ts';
import type { FakeScript, FakeStore } from '#runtimes/fake/store.ts';

/** Requested outcome of an execution of the fake. By default it writes nothing and ends at once with status 0. */
export interface FakeOutcome {
  exitCode?: number | null;
  /** Signal that ended it; its exit status is null then. */
  signal?: string;
  /** Reason of the end; `lost` means that the end can't be known. */
  reason?: TaskEnd['reason'];
  /** Output lines in order, at once or that many milliseconds after the beginning. */
  lines?: (string | { text: string; afterMs: number })[];
  /** Content of the output file; without it none is written. */
  output?: string | null;
  /** Duration in seconds; null: until its time is over, or it is ended or removed. */
  seconds?: number | null;
}

/** Name of the program of `task-program.ts` in an image. */
const PROGRAM = 'task.mjs';

/** Returns the requested outcome, else the result of the program in the contract's image, else success without output. */
export async function outcomeOf(
  spec: TaskSpec,
  store: FakeStore,
  ordered: FakeOutcome | undefined,
): Promise<FakeScript> {
  const command = [...spec.entrypoint, ...spec.arguments];
  if (!ordered && command.includes(PROGRAM)) return pretendSteps(spec, command, store);
  const { exitCode, signal = null, reason = 'exited', lines = [], output = null, seconds = 0 } = ordered ?? {};
  return {
    exitCode: exitCode === undefined ? (signal === null && reason === 'exited' ? 0 : null) : exitCode,
    signal,
    reason,
    lines: lines.map((line) => (typeof line === 'string' ? { text: line, afterMs: 0 } : line)),
    output,
    takesMs: seconds === null || seconds === Infinity ? null : seconds * 1000,
  };
}

/** Runs the program's steps at once, counting the time that they would take. */
async function pretendSteps(spec: TaskSpec, command: string[], store: FakeStore): Promise<FakeScript> {
  const { serviceId } = spec.identity;
  const image = store.readImage(spec.image);
  const lines: FakeScript['lines'] = [];
  const written: Record<string, string> = {};
  let clock = 0;
  const isMounted = (path: string) => spec.storage.some(({ mountPath }) => path.startsWith(`${mountPath}/`));
  const read = (name: string): string | undefined => {
    const path = resolve(image?.folder ?? '/', name);
    const file = spec.files.find((entry) => entry.path === path)?.content;
    return file ?? written[path] ?? (isMounted(path) ? store.readStorage(serviceId)[path] : image?.files[path]);
  };
  const host: TaskHost = {
    environment: { ...image?.environment, ...spec.environment },
    process: crypto.randomUUID(),
    arguments: command.slice(command.indexOf(PROGRAM) + 1, -1),
    readFile: (name) => {
      const text = read(name);
      if (text === undefined) throw new Error(`ENOENT: no such file: ${name}`);
      return text;
    },
    writeFile: (name, text) => {
      const path = resolve(image?.folder ?? '/', name);
      written[path] = text;
      if (isMounted(path)) store.writeStorage(serviceId, { ...store.readStorage(serviceId), [path]: text });
    },
    say: (text) => void lines.push({ text, afterMs: clock }),
    wait: async (ms) => void (clock += ms),
    // The child ends with the execution, whose end is not known yet.
    countInChild: async (path) => host.writeFile(path, '1'),
    fetch: async () => {
      throw new Error('The fake runtime has no network.');
    },
  };
  const exitCode = await runSteps(JSON.parse(command.at(-1)!) as TaskStep[], host);
  const output = spec.outputPath === null ? null : (read(spec.outputPath) ?? null);
  return { exitCode, signal: null, reason: 'exited', lines, output, takesMs: clock };
}
