import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { printAside } from '#cli/print.ts';
import type { DockerfileOptions } from '#cli/dockerfile.ts';
import type { VerifyOptions } from '#cli/audit.ts';
import type { MoveOptions } from '#cli/move-pack.ts';
import type { UnpackOptions } from '#cli/move-unpack.ts';
import type { DrainOptions, NodeOptions } from '#cli/node.ts';
import type { RestoreOptions } from '#cli/restore.ts';
import type { TokenOptions } from '#cli/token.ts';
import type { UninstallOptions } from '#cli/uninstall.ts';
import type { UpOptions } from '#cli/up.ts';
import type { WorldOptions } from '#cli/world.ts';
import { readSettings, SettingsError, type Settings } from '#platform/settings/index.ts';

type Environment = Record<string, string | undefined>;

/** The `quarterdeck` command. Answers the exit status: 0 done, 1 failed, 2 used wrongly. */
export async function runCommandLine(args: string[], environment: Environment): Promise<number> {
  try {
    await createProgram(environment).parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    printAside(error instanceof SettingsError ? error.message : `quarterdeck: ${(error as Error).message}`);
    if (!(error instanceof SettingsError) && environment.QUARTERDECK_LOG_LEVEL === 'debug')
      printAside(String((error as Error).stack));
    return error instanceof SettingsError ? 2 : 1;
  }
}

/** Each command loads its own parts when it is called. */
function createProgram(environment: Environment): Command {
  const settings = (change: Environment = {}): Settings => readSettings({ ...environment, ...change });
  const program = new Command('quarterdeck')
    .description('A self-hosted control plane for cloud application infrastructure.')
    .exitOverride();
  program
    .command('start', { isDefault: true })
    .description('start the service: API, worker, embedded PostgreSQL')
    .option('--role <role>', 'api, worker or all')
    // It is the default, so that every command that is none ends up here.
    .allowExcessArguments()
    .action(async ({ role }: { role?: string }, { args }: Command) => {
      if (args.length > 0) {
        const names = program.commands.map((command) => command.name()).join(', ');
        program.error(`Unknown command "${args[0]}". Commands: ${names}.`);
      }
      const chosen = settings(role ? { QUARTERDECK_ROLE: role } : {});
      (await import('#platform/move/record.ts')).refuseMoved(chosen.dataDir);
      await (await import('#platform/database/server.ts')).beginServer(chosen);
      await (await import('#cli/start.ts')).startCommand(chosen);
    });
  program
    .command('migrate')
    .description('bring the database to this release without serving')
    .action(async () => (await import('#cli/migrate.ts')).migrateCommand(settings()));
  program
    .command('doctor')
    .description('look at what the service stands on: Node.js, PostgreSQL, runtimes, tools')
    .action(async () => (await import('#cli/doctor.ts')).doctorCommand(settings(), environment.PATH));
  const inspect = program.command('inspect').description('show what the service is at');
  inspect
    .command('work')
    .description('what waits, runs, is oldest, was begun again and failed last, of each kind of work')
    .action(async () => (await import('#cli/inspect.ts')).inspectWorkCommand(settings()));
  inspect
    .command('clusters')
    .description('where each cluster is, when it answered last, and what does not work there')
    .action(async () => (await import('#cli/inspect.ts')).inspectClustersCommand(settings()));
  program
    .command('cluster')
    .description('what clusters need')
    .command('rbac')
    .description(
      'print the account and the rights that a Kubernetes cluster is connected with, for `kubectl apply -f -`',
    )
    .option('--namespace <name>', 'namespace of the account', 'quarterdeck')
    .action(async ({ namespace }: { namespace: string }) => (await import('#cli/cluster.ts')).rbacCommand(namespace));
  program
    .command('demo')
    .description('deploy the example application and show its address and answer')
    .addOption(new Option('--remove', 'remove it afterwards without asking').conflicts('keep'))
    .option('--keep', 'leave it running without asking')
    .action(async (options: { remove?: true; keep?: true }) =>
      (await import('#cli/demo.ts')).demoCommand(settings(), options),
    );
  program
    .command('up')
    .description('upload a folder as the source of an application, and deploy it')
    .argument('[folder]', 'the folder of the application', '.')
    .requiredOption('--application <id>', 'the application, which is there already')
    .option('--url <url>', 'address of the API; that of the settings without')
    .option('--token-file <file>', "file with an API token; the data directory's admin-token without")
    .action(async (folder: string, options: UpOptions) =>
      (await import('#cli/up.ts')).upCommand(settings(), folder, options),
    );
  program
    .command('dockerfile')
    .description('print the Dockerfile that a folder without one is built with')
    .argument('[folder]', 'the folder with the project', '.')
    .option('--root <path>', 'the folder of the project in that folder, for a part of a workspace', '/')
    .option('--port <port>', 'the port that the program listens on; 8080 without', toPort)
    .addOption(new Option('--job', 'for a job, which has no port').conflicts('port'))
    .option('--command', 'for a service that names its command itself')
    .option('--machine', 'for a cluster whose images are the machine itself')
    .action(async (folder: string, options: DockerfileOptions) =>
      (await import('#cli/dockerfile.ts')).dockerfileCommand(folder, options),
    );
  program
    .command('backup')
    .description('write the database into a file, while the service runs or not; the key of the vault is not in it')
    .requiredOption('--output <file>', 'a file that is not there yet')
    .action(async ({ output }: { output: string }) =>
      (await import('#cli/backup.ts')).backupCommand(settings(), output),
    );
  program
    .command('restore')
    .description('load a backup into an empty database; the installation is read-only until it is accepted')
    .argument('[file]', 'what `backup` wrote')
    .option('--accept', 'end the read-only state after a restore')
    .option('--apply-missing', 'with --accept: start what should run and does not')
    .option('--run-waiting', 'with --accept: carry out what waited in the queue; it is cancelled otherwise')
    .action(async (file: string | undefined, options: RestoreOptions) =>
      (await import('#cli/restore.ts')).restoreCommand(settings(), file, options),
    );
  addCopyCommands(program, settings);
  addMoveCommands(program, settings);
  program
    .command('world')
    .description('how what runs on this machine differs from the database')
    .option('--json', 'for programs')
    .option(
      '--remove-unknown [service...]',
      'remove what the database does not know, with its storage: all, or these ids',
    )
    .option('--apply-missing', 'start what a restore left stopped and should run')
    .action(async (options: WorldOptions) => (await import('#cli/world.ts')).worldCommand(settings(), options));
  program
    .command('uninstall')
    .description('remove everything that is deployed, with its data, and then the data directory; it asks before')
    .option('--yes', 'do not ask')
    .option('--leave-unreachable', 'go on although something cannot be reached or removed')
    .action(async (options: UninstallOptions) =>
      (await import('#cli/uninstall.ts')).uninstallCommand(settings(), options),
    );
  program
    .command('version')
    .description('print the versions of this program, of Node.js and of the embedded PostgreSQL')
    .action(async () => (await import('#cli/version.ts')).versionCommand());
  program
    .command('proxy')
    .description('the reverse proxy, a process of its own that outlives the service')
    .command('stop')
    .description('end the proxy, once the service is stopped: deployed services can no longer be reached')
    .action(async () => (await import('#cli/proxy.ts')).stopProxyCommand(settings()));
  addNodeCommands(program, settings);
  addAuditCommands(program, settings);
  addKeyCommands(program, settings);
  addTokenCommands(program, settings);
  addUserCommands(program, settings);
  addMailCommands(program, settings);
  return program;
}

function addCopyCommands(program: Command, settings: () => Settings): void {
  const copy = program.command('copy').description('encrypted backups in an S3-compatible store elsewhere');
  const name = 'its name, or `latest`';
  copy
    .command('list')
    .description('list the copies in the store')
    .action(async () => (await import('#cli/copy.ts')).listCopiesCommand(settings()));
  copy
    .command('make')
    .description('make a copy now, and remove those that are too old')
    .action(async () => (await import('#cli/copy.ts')).makeCopyCommand(settings()));
  copy
    .command('check')
    .description('restore a copy into a scratch database, which is dropped again')
    .argument('[name]', name, 'latest')
    .action(async (given: string) => (await import('#cli/copy.ts')).checkCopyCommand(settings(), given));
  copy
    .command('fetch')
    .description('write the backup in a copy into a file, for `restore`; it needs the key file, and no database')
    .argument('[name]', name, 'latest')
    .requiredOption('--output <file>', 'a file that is not there yet')
    .action(async (given: string, { output }: { output: string }) =>
      (await import('#cli/copy.ts')).fetchCopyCommand(settings(), given, output),
    );
}

function addMoveCommands(program: Command, settings: () => Settings): void {
  const move = program.command('move').description('the whole installation to another machine, volumes included');
  const passphrase = () =>
    new Option('--passphrase-file <file>', 'file whose first line is the passphrase that encrypts the archive');
  move
    .command('pack')
    .description('on the old machine: stop the services, write everything into an archive, and start no more')
    .argument('<file>', 'a file that is not there yet')
    .addOption(passphrase())
    .action(async (file: string, options: MoveOptions) =>
      (await import('#cli/move.ts')).packCommand(settings(), file, options),
    );
  move
    .command('unpack')
    .description('on the new machine: make the installation of the archive; repeat it if it was broken off')
    .argument('<file>', 'what `move pack` wrote')
    .addOption(passphrase())
    .option('--read-only', 'let nothing be deployed, scheduled or sent until `restore --accept`')
    .action(async (file: string, options: UnpackOptions) =>
      (await import('#cli/move.ts')).unpackCommand(settings(), file, options),
    );
  move
    .command('undo')
    .description('on the old machine: give the move up, so that the service starts here again')
    .action(async () => (await import('#cli/move.ts')).undoMoveCommand(settings()));
}

function addNodeCommands(program: Command, settings: () => Settings): void {
  const node = program.command('node').description('the machines of the installation');
  const json = () => new Option('--json', 'for programs');
  node
    .command('list')
    .description('list them with what runs and waits there, and when each was seen last')
    .addOption(json())
    .action(async (options: NodeOptions) => (await import('#cli/node.ts')).listNodesCommand(settings(), options));
  node
    .command('drain')
    .description('let a machine begin nothing new; what runs there goes on to its end')
    .argument('<name>', 'its name or id')
    .option('--wait <seconds>', 'return when nothing runs there any longer, and fail after that time', toSeconds)
    .addOption(json())
    .action(async (name: string, options: DrainOptions) =>
      (await import('#cli/node.ts')).drainNodeCommand(settings(), name, options),
    );
  node
    .command('undrain')
    .description('let a drained machine take work again')
    .argument('<name>', 'its name or id')
    .addOption(json())
    .action(async (name: string, options: NodeOptions) =>
      (await import('#cli/node.ts')).undrainNodeCommand(settings(), name, options),
    );
}

function toPort(given: string): number {
  if (!/^\d{1,5}$/.test(given) || Number(given) < 1 || Number(given) > 65_535)
    throw new InvalidArgumentError('It must be a port from 1 to 65535.');
  return Number(given);
}

function toSeconds(given: string): number {
  if (!/^\d{1,6}$/.test(given)) throw new InvalidArgumentError('It must be a number of seconds, such as 600.');
  return Number(given);
}

function addAuditCommands(program: Command, settings: () => Settings): void {
  program
    .command('audit')
    .description('the audit events')
    .command('verify')
    .description(
      'compare them with what was signed and sealed; the exit status is 1 if one was changed, removed or put in',
    )
    .option('--organization <id or name>', 'only of this one')
    .option('--json', 'for programs: a line for each organization')
    .action(async (options: VerifyOptions) => (await import('#cli/audit.ts')).verifyAuditCommand(settings(), options));
}

function addKeyCommands(program: Command, settings: () => Settings): void {
  const key = program.command('key').description('the key of the vault, which encrypts all secrets');
  key
    .command('rotate')
    .description('put a new key in front of the key file and seal everything anew with it')
    .option('--stage', 'only make the next key, so that it can be copied to other machines first')
    .action(async (options: { stage?: true }) => (await import('#cli/key.ts')).rotateKeyCommand(settings(), options));
  key
    .command('status')
    .description('which keys there are, and how many values each encrypts')
    .action(async () => (await import('#cli/key.ts')).keyStatusCommand(settings()));
}

function addTokenCommands(program: Command, settings: () => Settings): void {
  const token = program
    .command('token')
    .description('API tokens, for whoever has the installation itself in hand')
    .option('--organization <id or name>', 'needed where there are several');
  const organization = () => token.opts<{ organization?: string }>().organization;
  token
    .command('create')
    .description('make a token; its text is printed this once')
    .requiredOption('--name <name>', 'unique in its organization')
    .requiredOption('--scope <scope>', 'ADMIN, WRITE, DEPLOY or READ')
    .option('--description <text>', 'what it is for')
    .option('--expires <date>', 'when it ends, such as 2030-01-31; never without')
    .option('--project <id>', 'limits it to a project')
    .option('--environment <id>', 'limits it to an environment')
    .action(async (options: TokenOptions) =>
      (await import('#cli/token.ts')).createTokenCommand(settings(), organization(), options),
    );
  token
    .command('list')
    .description('list the tokens, without their secrets')
    .action(async () => (await import('#cli/token.ts')).listTokensCommand(settings(), organization()));
  token
    .command('revoke')
    .description('end a token')
    .argument('<token>', 'its id or name')
    .action(async (name: string) =>
      (await import('#cli/token.ts')).revokeTokenCommand(settings(), organization(), name),
    );
}

function addMailCommands(program: Command, settings: () => Settings): void {
  program
    .command('mail')
    .description('mail to people')
    .command('test')
    .description('send a mail through the server of the settings, and say what it answers')
    .argument('<address>', 'whom it is sent to')
    .action(async (address: string) => (await import('#cli/mail.ts')).testMailCommand(settings(), address));
}

function addUserCommands(program: Command, settings: () => Settings): void {
  const user = program.command('user').description('people, for whoever has the installation itself in hand');
  user
    .command('list')
    .description('list them, how they sign in, and their roles')
    .action(async () => (await import('#cli/user.ts')).listUsersCommand(settings()));
  user
    .command('link')
    .description(
      'print a one-time link by which a person chooses name and password or a passkey, also in place of forgotten ones',
    )
    .argument('<person>', 'their name to sign in with, id, address or nickname')
    .action(async (name: string) => (await import('#cli/user.ts')).makeUserLinkCommand(settings(), name));
  user
    .command('address')
    .description('set the address that links for a forgotten password are mailed to')
    .argument('<person>', 'their name to sign in with, id, address or nickname')
    .argument('[address]', 'such as ada@example.com; none without')
    .action(async (name: string, address: string | undefined) =>
      (await import('#cli/user.ts')).setAddressCommand(settings(), name, address),
    );
  user
    .command('passkeys')
    .description('list the passkeys of a person')
    .argument('<person>', 'their name to sign in with, id, address or nickname')
    .option('--remove <passkey>', 'id of a passkey to remove, which ends their sessions')
    .action(async (name: string, options: { remove?: string }) =>
      (await import('#cli/user.ts')).passkeysCommand(settings(), name, options),
    );
  user
    .command('sign-out')
    .description('end the sessions of a person')
    .argument('<person>', 'their name to sign in with, id, address or nickname')
    .option('--remove-password', 'and their passkeys, so that they sign in again only by another link')
    .action(async (name: string, options: { removePassword?: true }) =>
      (await import('#cli/user.ts')).signOutUserCommand(settings(), name, options),
    );
}
