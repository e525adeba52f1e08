/**
 * Measures trees for its parent process, with the lowest priority. Reads a job as JSON from its standard input and writes a line of JSON
 * for each tree, and one each second for a tree that takes longer: after a kill the parent knows the partial size.
 */
import { readFileSync, writeSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { emptySize, walkTree, type TreeSize } from './walk.ts';

/** Trees to measure: the paths of a tree count together. */
export interface WalkJob {
  trees: string[][];
  /** Milliseconds for one tree. */
  treeMs: number;
}

/** Size of a tree, by its number in the job. */
export interface WalkLine extends TreeSize {
  tree: number;
}

const REPORT_MS = 1000;

const job = JSON.parse(readFileSync(0, 'utf8')) as WalkJob;
// Linux derives the priority of disk reads from that of the process.
setPriority(constants.priority.PRIORITY_LOW);

for (const [tree, paths] of job.trees.entries()) {
  const size = emptySize();
  const report = (line: TreeSize) => writeSync(1, `${JSON.stringify({ tree, ...line } satisfies WalkLine)}\n`);
  const begun = performance.now();
  let reported = begun;
  const isLate = () => {
    const now = performance.now();
    if (now - reported > REPORT_MS) {
      reported = now;
      report({ ...size, isWhole: false });
    }
    return now - begun > job.treeMs;
  };
  for (const path of paths) walkTree(path, isLate, size);
  report(size);
}
