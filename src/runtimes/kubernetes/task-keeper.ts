import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Writable } from 'node:stream';
import { anySignal } from '#kernel/lease-signal.ts';
import { RuntimeError, type TaskSpec } from '#runtimes/runtime.ts';
import { MAX_OUTPUT_BYTES, outputTooLarge } from '#runtimes/tools/task-output.ts';
import type { Cluster } from './cluster.ts';
import { execInContainer } from './exec.ts';
import type { Container, Ended, Pod, Template } from './kinds.ts';
import { CONTAINER, RESTRICTIONS } from './objects.ts';

/** Name of the container that keeps an output file until its Job is removed. */
const KEEPER = 'output';
const VOLUME = 'output';
/** Size limit in MiB of the folder of an output file, which is in memory. */
const VOLUME_MIB = 8;
/** Requests are limits, so that the pod is among the last that a full node gives up. */
const AMOUNTS = { cpu: '20m', memory: '64Mi' };
/** Waits to be ended, and ends at once then: a shell that is process 1 ignores signals otherwise. */
const WAIT = 'trap "exit 0" TERM; while :; do sleep 3600 & wait; done';

/** Seconds that an output is kept while no control plane reads it, beyond the longest time of its command. */
export const KEPT_SECONDS = 6 * 3600;

/** Returns whether a second container keeps the output file of a command. */
export const isKept = ({ outputPath, hasShell }: TaskSpec): boolean => outputPath !== null && hasShell === true;

/** Adds the container that keeps the output file, of the same image. It gets neither variables nor other files. */
export function withKeeper(spec: TaskSpec, { metadata, spec: pod }: Template): Template {
  const mount = { name: VOLUME, mountPath: path.posix.dirname(spec.outputPath!) };
  const keeper: Container = {
    name: KEEPER,
    image: spec.image,
    imagePullPolicy: 'IfNotPresent',
    command: ['sh', '-c', WAIT],
    resources: { requests: AMOUNTS, limits: AMOUNTS },
    securityContext: RESTRICTIONS,
    volumeMounts: [{ ...mount, readOnly: true }],
  };
  const commands = pod.containers.map((container) => ({
    ...container,
    volumeMounts: [...(container['volumeMounts'] as object[]), mount],
  }));
  return {
    metadata: {
      ...metadata,
      // The first container is the default of other tools.
      annotations: { ...metadata.annotations, 'kubectl.kubernetes.io/default-container': CONTAINER },
    },
    spec: {
      ...pod,
      // Nodes start containers in this order: the command ends later than the keeper begins.
      containers: [keeper, ...commands],
      volumes: [
        ...(pod['volumes'] as object[]),
        { name: VOLUME, emptyDir: { medium: 'Memory', sizeLimit: `${VOLUME_MIB}Mi` } },
      ],
    },
  };
}

/** Returns whether a container of the pod keeps an output file. */
export const hasKeeper = ({ spec }: Pod): boolean =>
  ((spec.containers ?? []) as { name: string }[]).some(({ name }) => name === KEEPER);

const keeperOf = ({ status }: Pod) => status?.containerStatuses?.find(({ name }) => name === KEEPER)?.state;

/** Returns whether a command had ended before its pod was: its keeper outlived it. */
export function endedBefore(pod: Pod, { finishedAt }: Ended): boolean {
  const keeper = keeperOf(pod)?.terminated;
  return keeper?.finishedAt !== undefined && Date.parse(finishedAt!) < Date.parse(keeper.finishedAt);
}

/** Writes the size of a file on a line, then the file; `-` if there is none. */
const PRINT = 'if [ -f "$1" ]; then wc -c <"$1" && cat "$1"; else echo -; fi';
/** Milliseconds of one reading. The file may be anything that the command made, such as a pipe without an end. */
const READING_MS = 60_000;
/** Milliseconds in which a node that does not answer is asked again. */
const PATIENCE_MS = 60_000;
const AGAIN_MS = 2000;
/** Bytes of the line with the size. */
const MOST_OF_LINE = 32;

/**
 * Reads the output file of a command that ended well; null if there is none. It can be read again until the Job is removed. Throws
 * RuntimeError `failed` if it is too large, or gone with its container.
 */
export async function readKept(
  cluster: Cluster,
  { outputPath }: Pick<TaskSpec, 'outputPath'>,
  pod: Pod,
  signal: AbortSignal,
): Promise<string | null> {
  if (!keeperOf(pod)?.running) throw lost(outputPath!, keeperOf(pod)?.waiting?.message ?? 'its pod was ended');
  for (const end = Date.now() + PATIENCE_MS; ; await sleep(AGAIN_MS, undefined, { signal })) {
    try {
      const read = await readOnce(cluster, outputPath!, pod, signal);
      if (read !== undefined) return read;
      if (Date.now() > end) throw lost(outputPath!, 'it came incompletely each time');
    } catch (error) {
      if (!(error instanceof Unread) || signal.aborted) throw error;
      if (Date.now() > end) throw lost(outputPath!, error.message);
    }
  }
}

const lost = (outputPath: string, why: string): RuntimeError =>
  new RuntimeError(
    'failed',
    `The command ended well, but its output file ${outputPath} cannot be read (${why}): what it did holds; run it again to have its output.`,
  );

/** Failure of a reading that another one may not have. */
class Unread extends Error {}

/** Reads the file once; undefined if what came is not the whole file. */
async function readOnce(
  cluster: Cluster,
  outputPath: string,
  pod: Pod,
  signal: AbortSignal,
): Promise<string | null | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  const stdout = new Writable({
    write: (part: Buffer, _encoding, done) => {
      // The rest of a larger file is not kept: its size stands in the first line.
      if (size < MAX_OUTPUT_BYTES + MOST_OF_LINE) parts.push(part);
      size += part.length;
      done();
    },
  });
  const command = ['sh', '-c', PRINT, 'sh', outputPath];
  const late = AbortSignal.timeout(READING_MS);
  const request = { command, environment: {}, stdout };
  const { exitCode, stderr } = await execInContainer(cluster, pod, KEEPER, request, anySignal([signal, late])).catch(
    (error: unknown) => {
      const isOurs = error instanceof RuntimeError && (error.code === 'failed' || late.aborted);
      throw isOurs ? new Unread(late.aborted ? 'it has no end' : error.message) : error;
    },
  );
  if (exitCode !== 0) throw new Unread(stderr || `its reader ended with status ${exitCode}`);
  const all = Buffer.concat(parts);
  const line = all.indexOf('\n');
  if (line < 0) return undefined;
  const told = all.subarray(0, line).toString('latin1').trim();
  if (told === '-') return null;
  if (Number(told) > MAX_OUTPUT_BYTES) throw outputTooLarge(outputPath, Number(told));
  const content = all.subarray(line + 1);
  return content.length === Number(told) ? content.toString('utf8') : undefined;
}
