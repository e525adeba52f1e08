import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from 'pino';
import { systemClock } from '#kernel/clock.ts';
import { newId } from '#kernel/ids.ts';
import { withStartLock } from '#kernel/start-lock.ts';
import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '#platform/database/embedded.ts';
import { openDatabase, sql, type Database, type OpenDatabase } from '#platform/database/index.ts';
import { lockInTransaction } from '#platform/database/locks.ts';
import { awaitDatabase } from '#platform/database/await-database.ts';
import { findServer } from '#platform/database/find-server.ts';
import { migrate } from '#platform/database/migrate.ts';
import { createNotifier, type Notifier } from '#platform/database/notify.ts';
import { readInstallation } from '#platform/installation/index.ts';
import type { Settings } from '#platform/settings/index.ts';
import { openInstallation, readVaultKeys, rereadVaultKeys } from '#platform/vault/key.ts';
import { insertCluster } from '#resources/cluster/index.ts';
import { makeAdministrator, makeAdministratorToken, makeOrganization } from '#resources/organization/index.ts';

/** What every command of the program stands on: a migrated database, the vault, the notifier. */
export interface Base {
  settings: Settings;
  log: Logger;
  embedded: EmbeddedPostgres | null;
  /** Of requests; the engine has a pool of its own. */
  database: OpenDatabase;
  engineDatabase: OpenDatabase;
  directConfig: pg.ClientConfig;
  platform: Platform;
  notifier: Notifier;
  installation: { id: string; epoch: number };
  nodeId: string;
  migrated: string[];
  /** Does a part of the start again while the database is away. */
  patiently<T>(work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** The server that the settings name, running, with the program's database in it. */
export interface Server {
  embedded: EmbeddedPostgres | null;
  config: pg.ClientConfig;
  /** Whether `config` leads through a pooler. */
  isPooled: boolean;
  /** The same not through a pooler. */
  directConfig: pg.ClientConfig;
  /** Ends the embedded server, unless another process of ours works with it. */
  close(): Promise<void>;
}

/** Starts or finds PostgreSQL and makes the program's database where there is none; what is in it is left alone. */
export async function openServer(settings: Settings, progress: (text: string) => void): Promise<Server> {
  mkdirSync(settings.dataDir, { recursive: true });
  shutOut(settings.dataDir);
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

/** Seconds that a PostgreSQL of your own may take to answer for the first time: one whose address is wrong never does. */
const FIRST_ANSWER_SECONDS = 10;
/** Seconds for which a database that was there may be away during the start. */
const START_SECONDS = 30;

/** Seconds that a statement may take. Locks are waited for 15 s at most; the longest deletions take some seconds. */
const ANSWER_SECONDS = 120;

/** Takes the right to list and write the data directory from other accounts. Some of ours have to pass through it (PostgreSQL's). */
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

export const vaultKeyFile = (settings: Settings): string =>
  settings.vaultKeyFile || path.join(settings.dataDir, 'vault.key');

/** Opens what the settings say, and makes what is missing. `progress` is told what takes its time. */
export async function openBase(
  settings: Settings,
  log: Logger,
  progress: (text: string) => void = () => undefined,
): Promise<Base> {
  const server = await openServer(settings, progress);
  const { embedded, config, directConfig, isPooled } = server;
  const patiently = <T>(work: () => Promise<T>) =>
    awaitDatabase(
      async () => {
        if (embedded && !embedded.isRunning()) await embedded.startAgain();
        return work();
      },
      START_SECONDS,
      (text) => {
        progress(text);
        log.warn(text);
      },
    );
  const migrated = await patiently(() => migrate(directConfig));
  const database = openDatabase({
    config: { ...config, max: settings.databasePoolSize },
    isPooled,
    answerSeconds: ANSWER_SECONDS,
  });
  // A deployment waits for commits most of its time: each that runs has a connection to wait on.
  const engineDatabase = openDatabase({
    config: { ...config, max: Math.max(4, settings.workerSlots) },
    isPooled,
    answerSeconds: ANSWER_SECONDS,
  });
  // Made by one process: those that start at once read it.
  const keys = await withStartLock(settings.dataDir, async () =>
    readVaultKeys(vaultKeyFile(settings), !settings.databaseUrl && !settings.vaultKeyFile),
  );
  const { vault, installationId, epoch } = await patiently(() =>
    openInstallation(database.db, keys, () => rereadVaultKeys(vaultKeyFile(settings))),
  );
  const notifier = createNotifier(database, (error) => log.warn({ err: error }, 'cannot notify'));
  const platform: Platform = {
    db: database.db,
    vault,
    settings,
    clock: systemClock,
    log,
    notify: (channel, payload) => notifier.notify(channel, payload),
  };
  const nodeId = await patiently(() => withStartLock(settings.dataDir, () => ensureNode(platform)));
  return {
    settings,
    log,
    embedded,
    database,
    engineDatabase,
    directConfig,
    platform,
    notifier,
    installation: { id: installationId, epoch },
    nodeId,
    migrated,
    patiently,
    close: async () => {
      await notifier.flush();
      await Promise.all([database.close(), engineDatabase.close()]);
      await server.close();
    },
  };
}

/** Whether another process of ours works with the embedded PostgreSQL: the last one out ends it. */
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

/** The id of this machine, kept in the data directory: clusters that live on it carry it. */
async function ensureNode({ db, settings }: Platform): Promise<string> {
  const file = path.join(settings.dataDir, 'node-id');
  if (!existsSync(file)) {
    writeFileSync(`${file}.new`, `${newId()}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
  const id = readFileSync(file, 'utf8').trim();
  await db
    .insertInto('node')
    .values({ id, name: hostname() })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ name: hostname(), seen_at: sql`now()` }))
    .execute();
  return id;
}

export const tokenFile = (settings: Settings): string => path.join(settings.dataDir, 'admin-token');

/** What the first start made. */
export interface FirstSteps {
  organizationId: string;
  token: string;
}

/**
 * The first start: an organization, its administrator with a token, and a cluster for this machine (decisions.md 26). The token is written to
 * its file before the commit, so that a crash leaves either everything or a file that means nothing. Undefined when it was done before.
 */
export async function firstSteps(
  base: Pick<Base, 'platform' | 'settings' | 'nodeId' | 'patiently'>,
  runtime: 'docker' | 'host' | 'fake',
): Promise<FirstSteps | undefined> {
  let made: FirstSteps | undefined;
  const take = async (context: Context) => {
    // One process at a time: several may start on an empty database.
    await lockInTransaction(context.db, 'firstStart');
    // What was restored is all that there is to be, even if that is nothing.
    if ((await readInstallation(context.db)).restoredAt) return undefined;
    const present = await context.db.selectFrom('organization').select('id').limit(1).executeTakeFirst();
    // A connection that broke during the commit leaves open whether what the attempt before made is there.
    if (present) return made && (await isOrganization(context.db, made.organizationId)) ? made : undefined;
    const userId = await makeAdministrator(context);
    const organizationId = await makeOrganization(context, 'My organization', userId);
    const token = await makeAdministratorToken(context, organizationId, userId, 'First administrator');
    await insertCluster(context, {
      organizationId,
      name: 'local',
      description: `This machine (${hostname()})`,
      runtime,
      nodeId: base.nodeId,
      deploy: true,
    });
    const file = tokenFile(base.settings);
    writeFileSync(`${file}.new`, `${token}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
    return (made = { organizationId, token });
  };
  return base.patiently(() => inTransaction(systemContext(base.platform), take));
}

const isOrganization = async (db: Database, id: string): Promise<boolean> =>
  (await db.selectFrom('organization').select('id').where('id', '=', id).executeTakeFirst()) !== undefined;
