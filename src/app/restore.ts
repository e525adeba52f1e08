import { statSync } from 'node:fs';
import type { Base } from '#app/install.ts';
import { createQuietLog } from '#platform/telemetry/log.ts';
import { RELEASE } from '#platform/release.ts';
import {
  cancelAllWaiting,
  endExecutions,
  endInterrupted,
  holdServices,
  releaseServices,
} from '#deployments/restored.ts';
import { systemClock } from '#kernel/clock.ts';
import { dumpDatabase, restoreDatabase, type Manifest } from '#platform/backup/index.ts';
import { inTransaction, systemContext, type Context } from '#platform/context.ts';
import { openServer } from '#platform/database/server.ts';
import { enterReadOnly, leaveReadOnly, readInstallation, removeGuards } from '#platform/installation/index.ts';
import type { Settings } from '#platform/settings/index.ts';
import { openInstallation, readVaultKeys, vaultKeyFile } from '#platform/vault/key.ts';
import { forgetReached } from '#resources/cluster/index.ts';
import { endAllSignIns } from '#resources/sign-in/index.ts';
import { keepOlderTombstones } from '#housekeeping/index.ts';

type Progress = (text: string) => void;

/** Writes a backup of the installation that the settings name into the file. Nothing is migrated, and a service that runs goes on. */
export async function backUp(
  settings: Settings,
  file: string,
  progress: Progress,
): Promise<{ manifest: Manifest; bytes: number }> {
  const server = await openServer(settings, progress);
  try {
    progress('Backing up');
    const manifest = await dumpDatabase(server.directConfig, file, RELEASE);
    return { manifest, bytes: statSync(file).size };
  } finally {
    await server.close();
  }
}

/** Restores a backup into the empty database that the settings name. The installation is read-only afterwards, under a higher epoch. */
export async function restore(settings: Settings, file: string, progress: Progress): Promise<Restored> {
  // Never made here: a new key would read nothing of the backup.
  const vaultKeys = readVaultKeys(vaultKeyFile(settings), false);
  const server = await openServer(settings, progress);
  try {
    let interrupted = 0;
    const manifest = await restoreDatabase(server.directConfig, file, {
      vaultKeys,
      progress,
      finish: async (db, { takenAt }) => {
        const { vault } = await openInstallation(db, vaultKeys);
        const platform = { db, vault, settings, clock: systemClock, log: createQuietLog() };
        const context = systemContext({ ...platform, notify: () => undefined }, 'quarterdeck restore');
        interrupted = await holdAll(context, new Date(takenAt));
      },
    });
    return { manifest, interrupted };
  } finally {
    await server.close();
  }
}

export interface Restored {
  manifest: Manifest;
  /** Deployments that were running when the backup was made. */
  interrupted: number;
}

/** Ends what ran, holds what should run, and lets nothing be written from then on. */
export async function holdAll(context: Context, takenAt: Date): Promise<number> {
  const { db } = context;
  await endExecutions(
    context,
    `The database was restored from a backup of ${takenAt.toISOString()}, when this run was under way: how it ended is not known.`,
  );
  const interrupted = await endInterrupted(
    context,
    `The database was restored from a backup of ${takenAt.toISOString()}, when this deployment was under way: how it ended is not known.`,
  );
  // The triggers gave up what these had built. In the world it may be what serves: only what was given up before the backup is collected.
  await keepOlderTombstones(db);
  await holdServices(db);
  // Nobody looks at clusters until then: that they did not answer meanwhile says nothing, and they may be on other machines by now.
  await forgetReached(db);
  await endAllSignIns(db);
  await enterReadOnly(db, takenAt);
  return interrupted;
}

export interface Acceptance {
  /** Raised above what the world was found to have, where that was higher. */
  epoch: number;
  cancelled: number;
  /** Services that start again where they do not run. */
  applied: number;
}

export interface AcceptOptions {
  /** Start what should run and does not. */
  applyMissing: boolean;
  /** Carry out what waited in the queue when the backup was made; it is cancelled otherwise. */
  runWaiting: boolean;
  /** Highest epoch that something in the world was made under. */
  worldEpoch: number;
}

/** Ends the read-only state of a restored installation. Throws when it is not in it. */
export async function accept(base: Pick<Base, 'platform'>, options: AcceptOptions): Promise<Acceptance> {
  const acceptance = await inTransaction(systemContext(base.platform, 'quarterdeck restore'), async (context) => {
    const { readOnlySince } = await readInstallation(context.db);
    if (!readOnlySince) throw new Error('There is nothing to accept: the installation is not read-only.');
    await leaveReadOnly(context.db, options.worldEpoch + 1);
    const cancelled = options.runWaiting ? 0 : await cancelAllWaiting(context);
    const applied = options.applyMissing ? await releaseServices(context.db) : 0;
    const { epoch } = await readInstallation(context.db);
    return { epoch, cancelled, applied };
  });
  await removeGuards(base.platform.db);
  return acceptance;
}
