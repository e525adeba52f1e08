import { findProgram } from '#runtimes/tools/find-program.ts';
import { RuntimeError, type ExecRequest } from '#runtimes/runtime.ts';

/** Variable that holds the service's SHELL until its program starts. */
const OWN_SHELL = 'QUARTERDECK_ARGUMENT_SHELL';

/**
 * Returns a command that runs on a terminal, by `script` of util-linux. That takes only a line for a shell: the line consists of numbered
 * variables, which hold the arguments and are unset again. Throws `refused` if the program is missing.
 */
export function onTerminal(
  command: string[],
  env: Record<string, string>,
  { columns, rows }: NonNullable<ExecRequest['terminal']>,
): { argv: string[]; env: Record<string, string> } {
  // The machine's own programs, independent of the service's PATH.
  const [script, stty] = [findProgram('script'), findProgram('stty')];
  if (process.platform !== 'linux' || script === null || stty === null)
    throw new RuntimeError(
      'refused',
      'There are no terminals on this machine, which takes `script` of util-linux: send tty_width=0 and tty_height=0.',
    );
  const names = command.map((_, index) => `QUARTERDECK_ARGUMENT_${index}`);
  const values = Object.fromEntries(names.map((name, index) => [name, command[index]!]));
  // By SHELL `script` chooses the shell that reads the line: the service's own value waits in another variable until then.
  const own = env['SHELL'];
  const line = [
    `${stty} rows ${Math.trunc(rows)} cols ${Math.trunc(columns)}`,
    `set -- ${names.map((name) => `"$${name}"`).join(' ')}`,
    own === undefined ? 'unset SHELL' : `SHELL="$${OWN_SHELL}"`,
    `unset ${[...names, OWN_SHELL].join(' ')}`,
    'exec "$@"',
  ].join('; ');
  return {
    argv: [script, '--quiet', '--return', '--flush', '--echo', 'always', '--command', line, '/dev/null'],
    env: {
      TERM: 'xterm-256color',
      ...env,
      ...values,
      SHELL: '/bin/sh',
      ...(own === undefined ? {} : { [OWN_SHELL]: own }),
    },
  };
}
