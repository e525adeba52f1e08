import { findProgram } from '#runtimes/tools/find-program.ts';
import { RuntimeError, type ExecRequest } from '#runtimes/runtime.ts';

/**
 * A command as it runs on a terminal, by `script` of util-linux, which takes a line for a shell only: the line is made of numbers, and the
 * arguments are variables that it takes away again. Throws `refused` where there is no such program.
 */
export function onTerminal(
  command: string[],
  env: Record<string, string>,
  { columns, rows }: NonNullable<ExecRequest['terminal']>,
): { argv: string[]; env: Record<string, string> } {
  if (process.platform !== 'linux' || findProgram('script') === null || findProgram('stty') === null)
    throw new RuntimeError(
      'refused',
      'There are no terminals on this machine, which takes `script` of util-linux: send tty_width=0 and tty_height=0.',
    );
  const names = command.map((_, index) => `QUARTERDECK_ARGUMENT_${index}`);
  const values = Object.fromEntries(names.map((name, index) => [name, command[index]!]));
  const line = [
    `stty rows ${Math.trunc(rows)} cols ${Math.trunc(columns)}`,
    `set -- ${names.map((name) => `"$${name}"`).join(' ')}`,
    `unset ${names.join(' ')}`,
    'exec "$@"',
  ].join('; ');
  return {
    argv: ['script', '--quiet', '--return', '--flush', '--echo', 'always', '--command', line, '/dev/null'],
    env: { TERM: 'xterm-256color', ...env, SHELL: '/bin/sh', ...values },
  };
}
