import { RuntimeError, type TaskSpec } from '#runtimes/runtime.ts';
import type { Ended, Pod } from './kinds.ts';

/** Bytes that a node keeps of a container's last message, from its end. */
const MOST_OF_CONTAINER = 4096;
/** Bytes that a node keeps of the last messages of all containers of a pod; others may have added some. */
const MOST_OF_POD = 12 * 1024;

/**
 * Returns the content of the output file, which the node hands on as the container's last message. The node says nothing of what it leaves
 * out: a message of full length is refused, since it may lack its beginning.
 */
export function outputOf({ outputPath }: Pick<TaskSpec, 'outputPath'>, { spec }: Pod, ended: Ended): string | null {
  if (outputPath === null || !ended.message) return null;
  const { containers = [], initContainers = [], ephemeralContainers = [] } = spec;
  const all = containers.length + initContainers.length + ephemeralContainers.length;
  const most = Math.min(MOST_OF_CONTAINER, Math.floor(MOST_OF_POD / Math.max(1, all)));
  if (Buffer.byteLength(ended.message) < most) return ended.message;
  throw new RuntimeError(
    'failed',
    `The output file ${outputPath} has ${most} bytes or more, and a Kubernetes cluster hands on at most ${most - 1}: write less into it, or run the job on a docker cluster, which takes 1 MiB.`,
  );
}
