import { anySignal } from '#kernel/lease-signal.ts';
import type { TreeSize } from '#runtimes/tools/disk-walk/walk.ts';
import type { WalkJob, WalkLine } from '#runtimes/tools/disk-walk/program.ts';
import { runCommand } from '#runtimes/tools/command.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

export type { TreeSize } from '#runtimes/tools/disk-walk/walk.ts';

/** Time limits in seconds for one tree, and for all trees of one measurement. */
const TREE_SECONDS = 60;
const ALL_SECONDS = 240;

const PROGRAM = new URL(`./program${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/** Trees to measure: the paths of a tree count together. Absent paths count as empty. */
export interface TreeRequest {
  key: string;
  paths: string[];
}

export interface MeasureOptions {
  /** Seconds for one tree. */
  treeSeconds?: number;
  /** Seconds for all trees. */
  allSeconds?: number;
  /** Program and arguments that start the measuring process, such as `unshare`. */
  prefix?: readonly string[];
}

/**
 * Measures trees one after the other in a process of the lowest priority, within the time limits. A tree that takes longer is returned with
 * its partial size; a tree that was not started is omitted. Throws RuntimeError `failed` if the process fails, and `aborted`.
 */
export async function measureTrees(
  trees: readonly TreeRequest[],
  signal: AbortSignal,
  options: MeasureOptions = {},
): Promise<Map<string, TreeSize>> {
  const { treeSeconds = TREE_SECONDS, allSeconds = ALL_SECONDS, prefix = [] } = options;
  const sizes = new Map<string, TreeSize>();
  if (trees.length === 0) return sizes;
  const job: WalkJob = { trees: trees.map(({ paths }) => paths), treeMs: treeSeconds * 1000 };
  const late = AbortSignal.timeout(allSeconds * 1000);
  const take = (line: string) => {
    const { tree, bytes, files, isWhole } = JSON.parse(line) as WalkLine;
    sizes.set(trees[tree]!.key, { bytes: Math.round(bytes), files, isWhole });
  };
  const [program, ...args] = [...prefix, process.execPath, '--disable-warning=ExperimentalWarning', PROGRAM.pathname];
  try {
    const { exitCode, stderr } = await runCommand(program!, args, {
      cwd: '/',
      input: JSON.stringify(job),
      signal: anySignal([signal, late]),
      onLine: (line, stream) => {
        if (stream === 'stdout') take(line);
      },
    });
    if (exitCode !== 0) throw new RuntimeError('failed', `The disk could not be measured: ${stderr.trim()}`);
  } catch (error) {
    if (signal.aborted || !late.aborted) throw error;
  }
  return sizes;
}

/** Measures the same trees repeatedly. Trees that a measurement did not reach keep their last size and come first in the next one. */
export class TreeMeter {
  readonly #options: MeasureOptions;
  #known = new Map<string, { size: TreeSize; round: number }>();
  #round = 0;

  constructor(options: MeasureOptions = {}) {
    this.#options = options;
  }

  async measure(trees: readonly TreeRequest[], signal: AbortSignal): Promise<Map<string, TreeSize>> {
    const round = ++this.#round;
    const before = this.#known;
    const roundOf = ({ key }: TreeRequest) => before.get(key)?.round ?? 0;
    const ordered = trees.toSorted((one, other) => roundOf(one) - roundOf(other));
    const fresh = await measureTrees(ordered, signal, this.#options);
    const known: typeof before = new Map();
    for (const { key } of trees) {
      const [size, former] = [fresh.get(key), before.get(key)];
      if (size) known.set(key, { size: former ? newer(size, former.size) : size, round });
      else if (former) known.set(key, former);
    }
    this.#known = known;
    return new Map([...known].map(([key, { size }]) => [key, size]));
  }
}

/** Returns the newer size, except a partial one below the former: then the former, marked as partial. */
const newer = (size: TreeSize, former: TreeSize): TreeSize =>
  size.isWhole || size.bytes >= former.bytes ? size : { ...former, isWhole: false };
