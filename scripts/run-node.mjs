// Runs a program on the project's Node, with this terminal, and ends as it ends.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { prepare, ROOT } from './prepare.mjs';

/** Starts `node ARGS` in the project; the promise answers the exit status. Ctrl-C reaches the child from the terminal itself. */
export function runNode(args, options = {}) {
  const node = prepare();
  const bin = path.join(ROOT, 'node_modules', '.bin');
  const env = { ...process.env, ...options.env, PATH: `${bin}${path.delimiter}${process.env.PATH ?? ''}` };
  const child = spawn(node, args, { cwd: options.cwd ?? ROOT, env, stdio: 'inherit' });
  process.on('SIGINT', () => undefined);
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => {
    child.on('error', (error) => {
      console.error(error.message);
      resolve(1);
    });
    child.on('exit', (code, signal) => resolve(signal === 'SIGINT' || signal === 'SIGTERM' ? 0 : (code ?? 1)));
  });
}
