import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, readdir, readFile, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { startEmbeddedPostgres } from '#platform/database/embedded.ts';
import { migrate } from '#platform/database/migrate.ts';

export interface TestServer {
  directory: string;
  config: pg.ClientConfig;
  stop(): Promise<void>;
}

/** Starts a PostgreSQL for tests: the product's own server, without waiting for the disk. */
export async function startTestServer(parameters: Record<string, string> = {}): Promise<TestServer> {
  const folder = await findFastFolder();
  await removeAbandoned(folder);
  const directory = await mkdtemp(path.join(folder, `qd-pg-${process.pid}-`));
  await chmod(directory, 0o755);
  const server = await startEmbeddedPostgres({
    directory,
    parameters: {
      fsync: 'off',
      synchronous_commit: 'off',
      full_page_writes: 'off',
      max_connections: '300',
      max_wal_size: '256MB',
      ...parameters,
    },
  });
  return {
    directory,
    config: server.config,
    stop: async () => {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Free memory in bytes that a server may fill: two clones per worker, 256 MB of WAL, and test data. */
const NEEDED_MEMORY = 4 * 2 ** 30;

/**
 * Returns a folder in memory, or the one for temporary files where there is none with enough space. A clone has 800 files: ext4 looks at
 * each inode that was deleted in the last seconds before it makes a new one, which took a fifth of the processor time of all tests.
 */
async function findFastFolder(): Promise<string> {
  const { bavail, bsize } = await statfs('/dev/shm').catch(() => ({ bavail: 0, bsize: 0 }));
  return bavail * bsize >= NEEDED_MEMORY ? '/dev/shm' : tmpdir();
}

/** Ends the servers of runs that were killed, and removes what they hold in memory. */
async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const owner = /^qd-pg-(\d+)-/.exec(name)?.[1];
    if (owner === undefined || isAlive(Number(owner))) continue;
    const directory = path.join(folder, name);
    const server = Number(
      (await readFile(path.join(directory, 'data', 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')[0],
    );
    const command = server > 0 ? await readFile(`/proc/${server}/cmdline`, 'utf8').catch(() => '') : '';
    if (command.includes(directory)) process.kill(server, 'SIGQUIT');
    await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Makes the migrated template from which each test file's database is cloned. */
export async function makeTemplate(config: pg.ClientConfig): Promise<string> {
  await execute(config, 'create database template_quarterdeck');
  await migrate({ ...config, database: 'template_quarterdeck' });
  return 'template_quarterdeck';
}

/** Creates a database for one test file. */
export async function cloneDatabase(
  config: pg.ClientConfig,
  template: string,
): Promise<{ config: pg.ClientConfig; drop(): Promise<void> }> {
  const name = `t_${randomBytes(6).toString('hex')}`;
  await execute(config, `create database ${name} template ${template} strategy file_copy`);
  return { config: { ...config, database: name }, drop: () => execute(config, `drop database ${name} with (force)`) };
}

/** Runs `work` on a server with one migrated database, then removes both. */
export async function withFreshDatabase(work: (config: pg.ClientConfig) => Promise<void>): Promise<void> {
  const server = await startTestServer();
  try {
    await work({ ...server.config, database: await makeTemplate(server.config) });
  } finally {
    await server.stop();
  }
}

async function execute(config: pg.ClientConfig, statement: string): Promise<void> {
  const client = new pg.Client(config);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
