import { Command, CommanderError } from 'commander';
import { startCommand } from '#cli/start.ts';
import { readSettings, SettingsError, type Settings } from '#platform/settings/index.ts';

type Environment = Record<string, string | undefined>;

/** The `quarterdeck` command. Answers the exit status: 0 done, 1 failed, 2 used wrongly. */
export async function runCommandLine(args: string[], environment: Environment): Promise<number> {
  const program = new Command('quarterdeck')
    .description('A self-hosted control plane for cloud application infrastructure.')
    .exitOverride();
  const run =
    (
      work: (settings: Settings, options: Record<string, string>, ...rest: string[]) => Promise<void>,
      change: (options: Record<string, string>) => Environment = () => ({}),
    ) =>
    async (options: Record<string, string>) =>
      work(readSettings({ ...environment, ...change(options) }), options);
  program
    .command('start', { isDefault: true })
    .description('start the service: API, worker, embedded PostgreSQL')
    .option('--role <role>', 'api, worker or all')
    .action(
      run(
        (settings) => startCommand(settings),
        (options) => (options.role ? { QUARTERDECK_ROLE: options.role } : {}),
      ),
    );
  try {
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    console.error(error instanceof SettingsError ? error.message : `quarterdeck: ${(error as Error).message}`);
    if (!(error instanceof SettingsError) && environment.QUARTERDECK_LOG_LEVEL === 'debug') console.error(error);
    return error instanceof SettingsError ? 2 : 1;
  }
}
