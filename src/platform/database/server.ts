import { chmodSync, mkdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { withStartLock } from '#kernel/start-lock.ts';
import { awaitDatabase } from '#platform/database/await-database.ts';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '#platform/database/embedded.ts';
import { findServer } from '#platform/database/find-server.ts';
import { openDatabase, sql } from '#platform/database/index.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Seconds that a PostgreSQL of your own may take to answer for the first time: one whose address is wrong never does. */
const FIRST_ANSWER_SECONDS = 10;
/** Seconds for which a database that was there may be away during the start. */
export const START_SECONDS = 30;

/** Running server that the settings name, with the program's database in it. */
export interface Server {
  embedded: EmbeddedPostgres | null;
  config: pg.ClientConfig;
  /** True if `config` leads through a pooler. */
  isPooled: boolean;
  /** Connection that does not go through a pooler. */
  directConfig: pg.ClientConfig;
  /** Ends the embedded server, unless another process of this program works with it. */
  close(): Promise<void>;
}

/**
 * Begins to start the embedded PostgreSQL, so that it starts while the program is loaded. `openServer` waits for that start, and makes its own
 * and tells of the error where it fails.
 */
export async function beginServer(settings: Settings): Promise<void> {
  if (settings.databaseUrl) return;
  makeDataDir(settings);
  startEmbeddedPostgres({ directory: embeddedDirectory(settings) }).catch(() => undefined);
  // Its process is begun before this returns: what loads the program lets nothing else run.
  await setImmediate();
}

/** Starts or finds PostgreSQL and makes the program's database where there is none; what is in it is left alone. */
export async function openServer(settings: Settings, progress: (text: string) => void): Promise<Server> {
  makeDataDir(settings);
  if (settings.databaseUrl) {
    const found = await awaitDatabase(() => findServer(settings), FIRST_ANSWER_SECONDS, progress);
    return {
      embedded: null,
      config: { connectionString: settings.databaseUrl },
      ...found,
      close: async () => undefined,
    };
  }
  progress('Starting the embedded PostgreSQL');
  const directory = embeddedDirectory(settings);
  // Another process that ends just now may stop the server between its start and our first statement.
  const embedded = await awaitDatabase(
    async () => {
      const server = await startEmbeddedPostgres({ directory });
      await ensureDatabase(server.config);
      return server;
    },
    START_SECONDS,
    progress,
  );
  const config: pg.ClientConfig = { ...embedded.config, database: 'quarterdeck' };
  return {
    embedded,
    config,
    isPooled: false,
    directConfig: config,
    close: () =>
      withStartLock(directory, async () => {
        if (embedded.isRunning() && !(await isUsedByOthers(embedded.config))) await embedded.stop();
      }),
  };
}

const embeddedDirectory = (settings: Settings): string => path.join(settings.dataDir, 'postgres');

function makeDataDir({ dataDir }: Settings): void {
  mkdirSync(dataDir, { recursive: true });
  shutOut(dataDir);
}

/** Takes the right to list and write the data directory from other accounts. PostgreSQL's account has to pass through it. */
function shutOut(dataDir: string): void {
  const { uid, mode } = statSync(dataDir);
  if (uid === process.getuid?.()) chmodSync(dataDir, mode & 0o7771);
  // What an earlier release made.
  for (const folder of ['checkouts', 'images', 'postgres']) {
    const inner = path.join(dataDir, folder);
    const present = statSync(inner, { throwIfNoEntry: false });
    if (present?.uid === process.getuid?.())
      chmodSync(inner, present!.mode & (folder === 'checkouts' ? 0o7700 : 0o7771));
  }
}

/** Returns whether another process of this program works with the embedded PostgreSQL: the last one out ends it. */
async function isUsedByOthers(config: pg.ClientConfig): Promise<boolean> {
  const { db, close } = openDatabase({ config: { ...config, max: 1 } });
  try {
    // Our own connections, closed just now, may be listed for a few milliseconds more.
    for (const end = Date.now() + 500; ; await sleep(20)) {
      const { rows } =
        await sql`select 1 from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`.execute(
          db,
        );
      if (rows.length === 0) return false;
      if (Date.now() > end) return true;
    }
  } finally {
    await close();
  }
}

async function ensureDatabase(config: pg.ClientConfig): Promise<void> {
  const { db, close } = openDatabase({ config: { ...config, max: 1 } });
  try {
    const { rows } = await sql`select 1 from pg_database where datname = 'quarterdeck'`.execute(db);
    if (rows.length === 0)
      await sql`create database quarterdeck`.execute(db).catch((error: unknown) => {
        // Another process that starts at the same time has made it.
        if (!['23505', '42P04'].includes((error as { code?: string }).code ?? '')) throw error;
      });
  } finally {
    await close();
  }
}
