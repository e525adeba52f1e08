import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';

const LOAD = 'for (const program of process.argv.slice(1)) await import(program);';

/**
 * Compiles programs into a folder for Node (NODE_COMPILE_CACHE), unless the folder exists. Compilation runs in a separate process that
 * ends: a process that strips types keeps the 27 MB of Node's stripper for its whole life.
 */
export async function ensureCompiled(folder: string, programs: readonly URL[]): Promise<void> {
  if (existsSync(folder) || programs.every(({ pathname }) => !pathname.endsWith('.ts'))) return;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', LOAD, '--'];
  const env = { NODE_COMPILE_CACHE: folder };
  await promisify(execFile)(process.execPath, [...args, ...programs.map(({ href }) => href)], { cwd: '/', env });
}
