import { existsSync } from 'node:fs';
import { runCommand } from '#runtimes/tools/command.ts';

/** Seconds after which a measurement fails: a volume may have millions of files. */
const TIMEOUT_SECONDS = 300;

/** Measures the bytes on disk of a folder with its content; 0 if absent. Other file systems in it do not count. */
export async function folderBytes(folder: string, signal: AbortSignal): Promise<number> {
  if (!existsSync(folder)) return 0;
  // Files that disappear meanwhile cause status 1; the figure is still printed.
  const { stdout } = await runCommand('du', ['-skx', '--', folder], { timeoutSeconds: TIMEOUT_SECONDS, signal });
  const kilobytes = /^(\d+)\s/m.exec(stdout)?.[1];
  if (kilobytes === undefined) throw new Error(`du did not say what ${folder} takes.`);
  return Number(kilobytes) * 1024;
}
