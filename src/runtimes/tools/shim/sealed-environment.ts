import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { DEFAULT_PATH } from '#runtimes/tools/command.ts';

/**
 * Program for `node -e` within a view: reports on descriptor 3 that it runs, reads its environment from there and becomes the program of
 * its arguments. A workload's own variables (LD_PRELOAD) affect every program that gets them, and the programs that enter its namespaces
 * have more rights.
 */
const BECOME = `
const fs = require('node:fs');
fs.writeSync(3, '\\n');
const env = JSON.parse(fs.readFileSync(3, 'utf8'));
fs.closeSync(3);
const [name, ...args] = process.argv.slice(1);
const isProgram = (file) => {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
};
const folders = (env.PATH ?? '${DEFAULT_PATH}').split(':');
const file = name.includes('/') ? name : folders.map((folder) => folder + '/' + name).find(isProgram);
if (file === undefined || !isProgram(file)) {
  console.error(name + ': there is no such program');
  process.exit(127);
}
// Node ignores these, and so would the program: what has a handler is as usual again in the program that comes next.
for (const signal of ['SIGPIPE', 'SIGXFSZ']) process.on(signal, () => undefined);
process.execve(file, [name, ...args], env);
`;

/** Returns the arguments between those that enter a view and a command. `node` is its path in the view. */
export const becoming = (node: string): string[] => [node, '--no-warnings', '-e', BECOME, '--'];

/**
 * Starts a program whose arguments end with `becoming`: only the command itself gets the variables. Calls `confine` before the command
 * starts; an error of it becomes an error of the child.
 */
export function spawnSealed(
  program: string,
  args: string[],
  env: Record<string, string>,
  options: Omit<SpawnOptions, 'stdio' | 'env'> & { stdio: ('pipe' | 'ignore')[] },
  confine: (pid: number) => void = () => undefined,
): ChildProcess {
  const child = spawn(program, args, {
    ...options,
    env: { PATH: DEFAULT_PATH },
    stdio: [...options.stdio, 'pipe'],
  } as SpawnOptions);
  const given = child.stdio[3] as Duplex;
  // A child that ends before it reads them gives the reason by its end.
  given.on('error', () => undefined);
  given.once('data', () => {
    try {
      confine(child.pid!);
      given.end(JSON.stringify(env));
    } catch (error) {
      given.destroy();
      child.emit('error', error);
    }
  });
  return child;
}
