import { maskOf } from '#kernel/secrets-mask.ts';
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import type { Launcher, Place } from '#runtimes/host/launch.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { readEnd, writeEnd, type EndRecord } from '#runtimes/host/task-record.ts';
import { isWithin, resolveInRoot } from '#runtimes/host/view/root-path.ts';
import { OURS } from '#runtimes/host/view/plan.ts';
import { runChecked } from '#runtimes/tools/command.ts';
import { readShim, stopShim, type ShimState } from '#runtimes/tools/shim/index.ts';
import { MAX_OUTPUT_BYTES, outputTooLarge } from '#runtimes/tools/task-output.ts';
import { RuntimeError, type RuntimeContext, type TaskEnd, type TaskSpec } from '#runtimes/runtime.ts';

/** Files of an execution that are removed once its end is recorded; its records and its log stay. */
const USED_UP = ['upper', 'work', 'root', 'tree', 'files', 'plan.json'];
const READ_SECONDS = 30;

/** Program that prints the size of a file, and its content unless too large; nothing if absent. Runs in the view of the command. */
const READER = `const fs = require('node:fs');
const path = process.argv[1];
const stat = fs.statSync(path, { throwIfNoEntry: false });
if (stat?.isFile()) console.log(stat.size + ' ' + (stat.size > ${MAX_OUTPUT_BYTES} ? '' : fs.readFileSync(path).toString('base64')));`;

/** Content of an output file; only its size if it is too large. */
type Output = { bytes: number; content: string | null };
const NO_OUTPUT: Output = { bytes: 0, content: null };

/** Determines how commands ended, records it and frees their resources. */
export class TaskEnds {
  readonly #parts: HostParts;
  readonly #launcher: Launcher;

  constructor(parts: HostParts, launcher: Launcher) {
    this.#parts = parts;
    this.#launcher = launcher;
  }

  /**
   * Returns the end of a command that no longer runs. Throws RuntimeError `failed` if it could not start, or if its output is too large.
   */
  async endOf(place: Place, spec: TaskSpec, context: RuntimeContext): Promise<TaskEnd> {
    const record = readEnd(place.directory) ?? (await this.#findOnce(place, spec, context));
    if (record.outputBytes > MAX_OUTPUT_BYTES) throw outputTooLarge(spec.outputPath!, record.outputBytes);
    return record.end;
  }

  /** Determines and records the end. Another process that waits for the same command may be faster: its record is then used. */
  async #findOnce(place: Place, spec: TaskSpec, context: RuntimeContext): Promise<EndRecord> {
    try {
      return await this.#find(place, spec, context);
    } catch (error) {
      const present = readEnd(place.directory);
      if (present) return present;
      // The service was removed meanwhile: nobody can tell any more how the command ended.
      if (!existsSync(place.directory)) return { format: 1, end: lost(new Date().toISOString()), outputBytes: 0 };
      throw error;
    }
  }

  async #find(place: Place, spec: TaskSpec, context: RuntimeContext): Promise<EndRecord> {
    const { directory, name } = place;
    const { cgroups, network, bootId } = this.#parts;
    const state = readShim(directory, bootId)?.state;
    if (!state) return { format: 1, end: lost(new Date().toISOString()), outputBytes: 0 };
    const startedAt = state.startedAt ?? state.lastExit?.at ?? new Date().toISOString();
    // A shim that died may have left its process.
    await stopShim(directory, 0, bootId);
    const outOfMemory = cgroups.ranOutOfMemory(name);
    if (outOfMemory) context.log(`It needed more memory than its limit of ${spec.resources.memoryMib} MiB.`);
    const end = state.lastExit ? ended(state.lastExit, startedAt, outOfMemory, spec) : lost(startedAt);
    const output = end.reason === 'exited' && end.exitCode === 0 ? await this.#output(place, spec) : NO_OUTPUT;
    const record: EndRecord = { format: 1, end: { ...end, output: output.content }, outputBytes: output.bytes };
    const present = readEnd(directory);
    if (present) return present;
    writeEnd(directory, record);
    await network.detach(name);
    cgroups.remove(name);
    for (const used of USED_UP) removeTree(join(directory, used));
    return record;
  }

  async #output(place: Place, spec: TaskSpec): Promise<Output> {
    const { outputPath } = spec;
    if (outputPath === null) return NO_OUTPUT;
    if (this.#parts.machine.mode === 'plain') return this.#plainOutput(place, spec, outputPath);
    const reader = [`${OURS}/bin/node`, '-e', READER, outputPath];
    const { stdout } = await runChecked(...this.#launcher.inspection(place, spec, reader), {
      timeoutSeconds: READ_SECONDS,
      keepBytes: 2 * MAX_OUTPUT_BYTES,
    });
    const [, bytes, base64] = /^(\d+) (\S*)$/m.exec(stdout) ?? [];
    if (bytes === undefined) return NO_OUTPUT;
    const large = Number(bytes) > MAX_OUTPUT_BYTES;
    return { bytes: Number(bytes), content: large ? null : Buffer.from(base64!, 'base64').toString('utf8') };
  }

  /** Reads the output file of a tree, in which nothing runs any more; links in it are resolved within it. */
  #plainOutput({ directory }: Place, spec: TaskSpec, outputPath: string): Output {
    const storage = spec.storage.find(({ mountPath }) => isWithin(mountPath, outputPath));
    const path = storage
      ? resolveInRoot(join(this.#parts.layout.volume(storage.id), 'data'), outputPath.slice(storage.mountPath.length))
      : resolveInRoot(join(directory, 'tree'), outputPath);
    return readRegular(path);
  }
}

function readRegular(path: string): Output {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO'].includes((error as NodeJS.ErrnoException).code ?? '')) return NO_OUTPUT;
    throw error;
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) return NO_OUTPUT;
    return { bytes: stat.size, content: stat.size > MAX_OUTPUT_BYTES ? null : readFileSync(fd, 'utf8') };
  } finally {
    closeSync(fd);
  }
}

const lost = (startedAt: string): TaskEnd => {
  return { reason: 'lost', exitCode: null, signal: null, startedAt, endedAt: new Date().toISOString(), output: null };
};

function ended(
  { code, signal, reason, at: endedAt }: NonNullable<ShimState['lastExit']>,
  startedAt: string,
  outOfMemory: boolean,
  spec: TaskSpec,
): TaskEnd {
  if (reason.startsWith('cannot be started'))
    throw new RuntimeError('failed', maskOf(spec.secrets)(`The command ${reason}`));
  const interrupted = reason === 'timeout' || reason === 'stopped';
  const killed = outOfMemory && code !== 0;
  const bySignal = killed ? 'SIGKILL' : (signal ?? (interrupted ? 'SIGTERM' : null));
  return {
    reason: reason === 'timeout' ? 'timeout' : 'exited',
    exitCode: bySignal === null ? code : null,
    signal: bySignal,
    startedAt,
    endedAt,
    output: null,
  };
}
