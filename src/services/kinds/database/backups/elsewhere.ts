import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { Gauge, type Registry } from 'prom-client';
import type { Context } from '#platform/context.ts';
import { CopyStore, registerCopyGauges } from '#platform/copies/index.ts';
import type { Database } from '#platform/database/index.ts';
import { readInstallation } from '#platform/installation/index.ts';
import { Repeated } from '#platform/work/repeated.ts';
import { backupPath, removeBackup } from '#services/kinds/database/backups/file.ts';
import * as queries from '#services/kinds/database/backups/queries.ts';

/** Milliseconds between two looks for files to send: a store that was away is asked again with the next one. */
const LOOK_MS = 60_000;

type Parts = Pick<Context, 'db' | 'settings'>;
type Backup = { id: string; organization_id: string };

/** Returns the name of a backup's file in the store. The file is encrypted with a key of its own already. */
const nameOf = (installationId: string, { id, organization_id }: Backup): string =>
  `${installationId}/databases/${organization_id}/${id}.qdb`;

const placeOf = ({ settings }: Parts, { id, organization_id }: Backup) => ({
  dataDir: settings.dataDir,
  organizationId: organization_id,
  backupId: id,
});

/**
 * Fetches the file of a backup where this machine does not have it and the store does. Returns what removes it again: for the one who reads it
 * once on a machine that is not the backup's. Throws an error for people if the store cannot be asked.
 */
export async function fetchMissing(
  parts: Parts,
  backup: queries.BackupRow,
  signal: AbortSignal,
): Promise<() => Promise<void>> {
  const target = backupPath(placeOf(parts, backup));
  if (existsSync(target) || !backup.stored_at || !parts.settings.copiesUrl) return async () => undefined;
  const store = await CopyStore.open(parts.settings, signal);
  const { id: installationId } = await readInstallation(parts.db);
  const making = `${target}.${randomUUID()}.making`;
  await mkdir(path.dirname(target), { recursive: true, mode: 0o700 });
  try {
    await store.fetch(nameOf(installationId, backup), making);
    await rename(making, target);
  } finally {
    await rm(making, { force: true });
  }
  return () => removeBackup(placeOf(parts, backup), false);
}

/**
 * Sends the files of this machine's backups to the store of the settings, and removes those of deleted backups there. Does nothing without a
 * store.
 */
export class BackupSender {
  readonly #context: Context;
  readonly #nodeId: string;
  readonly #ending = new AbortController();
  readonly #looks: Repeated;
  /** Backups without a file, which are told once: they keep no later ones from being sent. */
  readonly #missing = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(context: Context, nodeId: string) {
    this.#context = context;
    this.#nodeId = nodeId;
    this.#looks = new Repeated(
      () => this.#look(),
      (error) => {
        if (!this.#ending.signal.aborted)
          context.log.warn({ err: error }, 'backups of databases cannot be sent to the store; tried again in a minute');
      },
    );
  }

  start(): void {
    if (!this.#context.settings.copiesUrl) return;
    this.#timer = setInterval(() => this.nudge(), LOOK_MS);
    this.nudge();
  }

  /** Looks for files now. */
  nudge(): void {
    if (this.#timer && !this.#ending.signal.aborted) void this.#looks.request();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#ending.abort();
    await this.#looks.settled();
  }

  async #look(): Promise<void> {
    const { db, settings } = this.#context;
    const [buried, unsent] = [
      await queries.listBuriedFiles(db, this.#nodeId, true),
      await queries.listUnsent(db, this.#nodeId, [...this.#missing]),
    ];
    if (buried.length + unsent.length === 0) return;
    const store = await CopyStore.open(settings, this.#ending.signal);
    const { id: installationId } = await readInstallation(db);
    // First what is new: a bucket may keep what is to be removed.
    for (const backup of unsent) await this.#send(store, nameOf(installationId, backup), backup);
    const refusals: unknown[] = [];
    for (const file of buried)
      await this.#remove(store, installationId, file).catch((error: unknown) => refusals.push(error));
    // A file that the store keeps holds up no other one.
    if (refusals.length > 0) throw refusals[0];
  }

  /** Removes the file of a deleted backup from the store, and what is left of it here. */
  async #remove(
    store: CopyStore,
    installationId: string,
    { backup_id: id, organization_id, last }: queries.BuriedFile,
  ) {
    await store.remove(nameOf(installationId, { id, organization_id }));
    await removeBackup(placeOf(this.#context, { id, organization_id }), last);
    await queries.removeBuriedFile(this.#context.db, id);
  }

  async #send(store: CopyStore, name: string, backup: Backup): Promise<void> {
    const { db, log } = this.#context;
    const file = backupPath(placeOf(this.#context, backup));
    if (!existsSync(file)) {
      log.warn({ backupId: backup.id }, 'the file of a backup of a database is gone: it cannot be sent to the store');
      this.#missing.add(backup.id);
      return;
    }
    // One that is deleted from here on has its object removed.
    await queries.markSent(db, backup, 'sending_at');
    await store.put(name, file);
    await queries.markSent(db, backup, 'stored_at');
  }
}

/** Registers what tells of the store elsewhere; nothing where the settings name none. */
export function registerStoreGauges(registry: Registry, db: Database, { copiesUrl }: { copiesUrl: string }): void {
  if (!copiesUrl) return;
  registerCopyGauges(registry, db);
  new Gauge({
    name: 'quarterdeck_database_backups_unsent',
    help: 'Backups of databases that are made and not yet in the store elsewhere.',
    registers: [registry],
    async collect() {
      this.set(await queries.countUnsent(db));
    },
  });
}
