import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';

const LOAD = 'for (const program of process.argv.slice(1)) await import(program);';

/**
 * Compiles programs of ours into a folder where Node finds them (NODE_COMPILE_CACHE), unless it is there. A process that strips
 * types from what it loads keeps the 27 MB that Node's stripper takes for as long as it lives: so one that ends does it.
 */
export async function ensureCompiled(folder: string, programs: readonly URL[]): Promise<void> {
  if (existsSync(folder) || programs.every(({ pathname }) => !pathname.endsWith('.ts'))) return;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', LOAD, '--'];
  const env = { NODE_COMPILE_CACHE: folder };
  await promisify(execFile)(process.execPath, [...args, ...programs.map(({ href }) => href)], { cwd: '/', env });
}
