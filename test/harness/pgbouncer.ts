import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { expect, vi } from 'vitest';
import { freePort } from '#test/harness/free-port.ts';

/** PgBouncer of this machine; undefined where it has none. */
const program = ['pgbouncer', '/usr/sbin/pgbouncer'].find((name) => spawnSync(name, ['--version']).status === 0);

/** Reason to skip the tests of the pooler; undefined if they run. */
export const noPooler = program ? undefined : 'PgBouncer is not installed (`apt-get install pgbouncer`).';
if (noPooler) console.warn(`Skipped: ${noPooler}`);

export interface Pooler {
  /** Connection through the pooler. */
  config: pg.ClientConfig;
  url: string;
  stop(): Promise<void>;
}

/** Starts PgBouncer in transaction mode on loopback, with fewer connections to the server than it has clients. */
export async function startPooler(server: pg.ClientConfig, poolSize = 4): Promise<Pooler> {
  const folder = mkdtempSync(path.join(tmpdir(), 'qd-pgbouncer-'));
  chmodSync(folder, 0o755);
  const port = await freePort();
  const database = `host=${server.host} port=${server.port} dbname=${server.database} user=${server.user} password=${String(server.password)}`;
  const file = path.join(folder, 'pgbouncer.ini');
  const users = path.join(folder, 'users.txt');
  writeFileSync(users, '"app" "secret"\n', { mode: 0o644 });
  writeFileSync(
    file,
    `[databases]\napp = ${database}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\npool_mode = transaction
auth_type = plain\nauth_file = ${users}\ndefault_pool_size = ${poolSize}\nmax_client_conn = 500\nserver_round_robin = 1\n`,
    { mode: 0o644 },
  );
  const child = run(file, server.host!);
  let said = '';
  child.stderr!.on('data', (chunk) => (said += String(chunk)));
  const config = { host: '127.0.0.1', port, user: 'app', password: 'secret', database: 'app' };
  await vi.waitFor(async () => expect(await answers(config), said).toBe(true), { timeout: 40_000 });
  return {
    config,
    url: `postgres://app:secret@127.0.0.1:${port}/app`,
    stop: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** As the account that the server's socket belongs to: PgBouncer refuses root. */
function run(file: string, socketFolder: string): ChildProcess {
  const options = { stdio: ['ignore', 'ignore', 'pipe'] as ['ignore', 'ignore', 'pipe'] };
  if (process.getuid?.() !== 0) return spawn(program!, [file], options);
  const { uid, gid } = statSync(socketFolder);
  if (uid !== 0) return spawn(program!, [file], { ...options, uid, gid });
  return spawn('unshare', ['--user', '--map-user=1000', '--map-group=1000', '--', program!, file], options);
}

async function answers(config: pg.ClientConfig): Promise<boolean> {
  const client = new pg.Client(config);
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
    return true;
  } catch {
    return false; // It is asked again until the time is over.
  } finally {
    await client.end().catch(() => undefined);
  }
}
