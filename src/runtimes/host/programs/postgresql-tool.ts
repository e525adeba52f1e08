/**
 * Helper of a PostgreSQL server of the host runtime: `node postgresql-tool.ts <native> <data> <verb> …`. It runs as the instance, in its
 * view, which holds no other file of this project: it imports Node's own modules only. `native` holds the binaries (initdb and postgres, no
 * client programs), `data` is the volume.
 */
import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';

const [native, data, verb, ...args] = process.argv.slice(2) as [string, string, string, ...string[]];
const files = join(data, 'pgdata');
const port = process.env['PORT'] ?? '5432';

/** Folders of a complete restore, and of the files that it replaced. */
const restored = join(data, 'restored');
const replaced = join(data, 'replaced');

function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`The variable ${name} is not set.`);
  return value;
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** Runs a program of the server to its end. */
function run(program: string, programArgs: string[], input = ''): void {
  const path = join(native, 'bin', program);
  const result = spawnSync(path, programArgs, {
    encoding: 'utf8',
    input,
    env: { PATH: process.env['PATH'], TZ: 'UTC' },
  });
  if (result.status !== 0)
    throw new Error(`${program} failed: ${result.error?.message ?? (result.stderr.trim() || result.stdout.trim())}`);
}

/** Creates the files of a new server. They have another name until they are complete: a killed attempt starts over. */
function initialise(): void {
  const fresh = join(data, 'pgdata.new');
  const passwordFile = join(data, 'password.new');
  rmSync(fresh, { recursive: true, force: true });
  writeFileSync(passwordFile, `${required('POSTGRES_PASSWORD')}\n`, { mode: 0o600 });
  // The socket lies in the folder of the files, which only this account may enter.
  const ways = ['--auth-local=trust', '--auth-host=scram-sha-256'];
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  run('initdb', [
    `--pgdata=${fresh}`,
    `--username=${required('POSTGRES_USER')}`,
    `--pwfile=${passwordFile}`,
    ...ways,
    ...locale,
    '--no-instructions',
  ]);
  rmSync(passwordFile);
  appendFileSync(join(fresh, 'pg_hba.conf'), '\nhost all all all scram-sha-256\n');
  run('postgres', ['--single', '-D', fresh, 'postgres'], `create database ${quoted(required('POSTGRES_DB'))}\n`);
  renameSync(fresh, files);
}

/** Moves the files of a restore into place. Each step may be the last one of a killed attempt. */
function takeRestored(): void {
  if (!existsSync(restored)) return;
  if (existsSync(files)) {
    rmSync(replaced, { recursive: true, force: true });
    renameSync(files, replaced);
  }
  renameSync(restored, files);
}

/** Prepares the files and replaces this process by the server. */
function start(): void {
  takeRestored();
  if (!existsSync(join(files, 'PG_VERSION'))) initialise();
  // A killed server leaves this file. Pids start over in a new namespace: any process could be taken for that server.
  rmSync(join(files, 'postmaster.pid'), { force: true });
  const settings = {
    listen_addresses: args[0] ?? '*',
    unix_socket_directories: '.',
    io_method: 'sync',
    jit: 'off',
    log_timezone: 'UTC',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const program = join(native, 'bin', 'postgres');
  const env = { PATH: process.env['PATH'] ?? '', TZ: 'UTC' };
  process.execve!(program, [program, '-D', files, '-p', port, ...options], env);
}

/** Message of the server: its type and content. */
interface Message {
  type: string;
  body: Buffer;
}

/** Yields messages as they come, with back-pressure. */
async function* messagesOf(socket: Socket): AsyncGenerator<Message> {
  let pending: Buffer = Buffer.alloc(0);
  for await (const part of socket) {
    pending = pending.length === 0 ? (part as Buffer) : Buffer.concat([pending, part as Buffer]);
    let at = 0;
    for (; pending.length - at >= 5;) {
      const end = at + 1 + pending.readUInt32BE(at + 1);
      if (pending.length < end) break;
      yield { type: String.fromCharCode(pending[at]!), body: pending.subarray(at + 5, end) };
      at = end;
    }
    pending = pending.subarray(at);
  }
}

function message(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}

const texts = (...parts: string[]) => Buffer.from(parts.map((part) => `${part}\0`).join(''));

/** Returns the text of an error message: its field M. */
const errorOf = (body: Buffer): string =>
  body
    .toString()
    .split('\0')
    .find((field) => field.startsWith('M'))
    ?.slice(1) ?? 'the server refused';

/** Connects over the server's socket and sends one statement; the answers go to `take` until the server is ready for another. */
async function ask(
  parameters: Record<string, string>,
  statement: string,
  take: (message: Message) => Promise<void> | void,
): Promise<void> {
  // A socket's path has at most 107 bytes: a relative path is short enough.
  process.chdir(files);
  const socket = connect({ path: `.s.PGSQL.${port}` });
  const version = Buffer.from([0, 3, 0, 0]);
  const named = Object.entries(parameters).flat();
  socket.write(message('', Buffer.concat([version, texts(...named), Buffer.from([0])])));
  let asked = false;
  for await (const { type, body } of messagesOf(socket)) {
    if (type === 'E') throw new Error(errorOf(body));
    if (type === 'Z' && asked) break;
    if (type === 'Z') {
      asked = true;
      socket.write(message('Q', texts(statement)));
    } else if (asked) await take({ type, body });
  }
  if (!asked) throw new Error('The server ended the connection.');
  socket.destroy();
}

const write = (bytes: Buffer | string): Promise<void> =>
  new Promise((resolve, reject) => process.stdout.write(bytes, (error) => (error ? reject(error) : resolve())));

/** Writes the first column of a row as a line. */
const printRow = ({ type, body }: Message): Promise<void> | void => {
  if (type !== 'D') return;
  const length = body.readInt32BE(2);
  return write(`${length < 0 ? '' : body.toString('utf8', 6, 6 + length)}\n`);
};

/** Returns the server's owner, the account of the tool's sessions. */
const owner = () => required('POSTGRES_USER');

/** Writes all files of the running server as a tar, with the log that makes them consistent. */
async function copy(): Promise<void> {
  let archives = 0;
  const statement = `BASE_BACKUP (LABEL 'quarterdeck', CHECKPOINT 'fast', WAL true, MANIFEST 'no')`;
  await ask({ user: owner(), replication: 'true' }, statement, ({ type, body }) => {
    if (type !== 'd') return;
    const [kind] = body.toString('latin1', 0, 1);
    if (kind === 'n' && ++archives > 1) throw new Error('Tablespaces outside of the volume are not copied.');
    return kind === 'd' ? write(body.subarray(1)) : undefined;
  });
  if (archives === 0) throw new Error('The server sent no files.');
  await write(Buffer.alloc(1024));
}

/** Unpacks a tar of `copy` from standard input, for the next start. The folder gets its name only when it is complete. */
async function unpack(): Promise<void> {
  const fresh = join(data, 'restored.new');
  rmSync(fresh, { recursive: true, force: true });
  rmSync(restored, { recursive: true, force: true });
  mkdirSync(fresh, { mode: 0o700 });
  const tar = spawn('tar', ['-x', '-f', '-', '-C', fresh], { stdio: ['inherit', 'inherit', 'inherit'] });
  const status = await new Promise<number | null>((resolve, reject) => {
    tar.once('error', reject);
    tar.once('exit', resolve);
  });
  if (status !== 0) throw new Error(`tar ended with status ${status}.`);
  for (const name of ['PG_VERSION', 'backup_label', 'global/pg_control'])
    if (!existsSync(join(fresh, name))) throw new Error(`What came has no ${name}: it is no whole copy of a server.`);
  chmodSync(fresh, 0o700);
  renameSync(fresh, restored);
}

/** Sets a role's password to POSTGRES_PASSWORD, and removes the files that a restore replaced. */
async function password(role: string): Promise<void> {
  const value = required('POSTGRES_PASSWORD').replaceAll("'", "''");
  await ask({ user: owner(), database: 'postgres' }, `alter role ${quoted(role)} password '${value}'`, () => undefined);
  rmSync(replaced, { recursive: true, force: true });
}

const VERBS: Record<string, () => Promise<void> | void> = {
  start,
  copy,
  unpack,
  ask: () => ask({ user: owner(), database: args[0]! }, args[1]!, printRow),
  password: () => password(args[0]!),
};

try {
  await VERBS[verb]!();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
