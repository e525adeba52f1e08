import type pg from 'pg';
import type { Logger } from 'pino';
import { systemClock } from '#kernel/clock.ts';
import { withStartLock } from '#kernel/start-lock.ts';
import type { Platform } from '#platform/context.ts';
import type { EmbeddedPostgres } from '#platform/database/embedded.ts';
import { openDatabase, type OpenDatabase } from '#platform/database/index.ts';
import { awaitDatabase } from '#platform/database/await-database.ts';
import { migrate } from '#platform/database/migrate.ts';
import { createNotifier, type Notifier } from '#platform/database/notify.ts';
import { openServer, START_SECONDS } from '#platform/database/server.ts';
import { ensureNode } from '#platform/installation/nodes.ts';
import type { Settings } from '#platform/settings/index.ts';
import { openInstallation, readVaultKeys, rereadVaultKeys, vaultKeyFile } from '#platform/vault/key.ts';

/** Parts that every command of the program needs: a migrated database, the vault, the notifier. */
export interface Base {
  settings: Settings;
  log: Logger;
  embedded: EmbeddedPostgres | null;
  /** Database of the requests; the engine has a connection pool of its own. */
  database: OpenDatabase;
  engineDatabase: OpenDatabase;
  directConfig: pg.ClientConfig;
  platform: Platform;
  notifier: Notifier;
  installation: { id: string; epoch: number };
  nodeId: string;
  migrated: string[];
  /** Repeats a part of the start while the database is not available. */
  patiently<T>(work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Seconds that a statement may take. Locks are waited for 15 s at most; the longest deletions take some seconds. */
const ANSWER_SECONDS = 120;

/**
 * Opens the database, the vault and the notifier of the settings, and creates what is missing. `progress` gets a line before each step that
 * takes long.
 */
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
