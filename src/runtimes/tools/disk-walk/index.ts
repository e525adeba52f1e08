import { emptySize, type TreeSize } from '#runtimes/tools/disk-walk/walk.ts';
import type { WalkJob, WalkLine } from '#runtimes/tools/disk-walk/program.ts';
import { runCommand } from '#runtimes/tools/command.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

export type { TreeSize } from '#runtimes/tools/disk-walk/walk.ts';

/** Seconds for one tree, and for all trees of one measurement. */
const TREE_SECONDS = 60;
const ALL_SECONDS = 240;

const PROGRAM = new URL(`./program${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/** Trees to be measured: each has paths that count together. What is not there takes nothing. */
export interface TreeRequest {
  key: string;
  paths: string[];
}

/**
 * Measures trees one after the other in a process of the lowest priority, each and all within their time. A tree that takes longer is answered
 * with what was counted of it, one that was not begun is not answered. Throws RuntimeError `failed` where the process fails, and `aborted`.
 */
export async function measureTrees(
  trees: readonly TreeRequest[],
  signal: AbortSignal,
  limits: { treeSeconds?: number; allSeconds?: number } = {},
): Promise<Map<string, TreeSize>> {
  const { treeSeconds = TREE_SECONDS, allSeconds = ALL_SECONDS } = limits;
  const sizes = new Map<string, TreeSize>();
  if (trees.length === 0) return sizes;
  const job: WalkJob = { trees: trees.map(({ paths }) => paths), treeMs: treeSeconds * 1000 };
  const late = AbortSignal.timeout(allSeconds * 1000);
  const take = (line: string) => {
    const { tree, bytes, files, isWhole } = JSON.parse(line) as WalkLine;
    sizes.set(trees[tree]!.key, { bytes: Math.round(bytes), files, isWhole });
  };
  try {
    const { exitCode, stderr } = await runCommand(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', PROGRAM.pathname],
      {
        cwd: '/',
        input: JSON.stringify(job),
        signal: AbortSignal.any([signal, late]),
        onLine: (line, stream) => {
          if (stream === 'stdout') take(line);
        },
      },
    );
    if (exitCode !== 0) throw new RuntimeError('failed', `The disk could not be measured: ${stderr.trim()}`);
  } catch (error) {
    if (signal.aborted || !late.aborted) throw error;
  }
  return sizes;
}

/** Sum of sizes; a size that is missing makes the sum incomplete. */
export function sumSizes(sizes: (TreeSize | undefined)[]): TreeSize {
  return sizes.reduce<TreeSize>(
    (sum, size) => ({
      bytes: sum.bytes + (size?.bytes ?? 0),
      files: sum.files + (size?.files ?? 0),
      isWhole: sum.isWhole && (size?.isWhole ?? false),
    }),
    emptySize(),
  );
}
