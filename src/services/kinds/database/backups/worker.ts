import { randomUUID } from 'node:crypto';
import { LeasedWork } from '#platform/work/leased-work.ts';
import { systemContext, type Context, type Platform } from '#platform/context.ts';
import { readBackup, removeBackup, verifyBackup, type BackupFile } from '#services/kinds/database/backups/file.ts';
import { failBackup, makeFile, reasonOf, serverOf } from '#services/kinds/database/backups/make.ts';
import { addBackup, fileOf } from '#services/kinds/database/backups/new-backup.ts';
import * as queries from '#services/kinds/database/backups/queries.ts';
import { restoreFrom, type Server } from '#services/kinds/database/backups/run.ts';
import { findServiceById } from '#services/service/queries.ts';
import type { Handle, Runtime } from '#runtimes/runtime.ts';

export interface BackupWorkerOptions {
  platform: Platform;
  /** This machine: it works on its own clusters, and keeps the files that it made. */
  nodeId: string;
  runtimeOf(cluster: { runtime: string }): Promise<Runtime>;
  /** Seconds that a claim holds without being renewed. */
  leaseSeconds?: number;
  pollMs?: number;
  /** Backups and restores at a time. */
  slots?: number;
}

type Table = 'database_backup' | 'database_restore';
type Claim = queries.BackupRow | queries.RestoreRow;

/** Thrown where another worker has the work by now, or it was deleted: this attempt stops. */
class ClaimLost extends Error {}

const requireHeld = (held: boolean): void => {
  if (!held) throw new ClaimLost();
};

const RENEWALS_PER_LEASE = 5;
const WATCH_MS = 250;

/**
 * Makes backups, carries out restores and removes files of backups that were deleted. What is requested stands in the database and is claimed
 * with a lease; what a killed worker left is begun anew.
 */
export class BackupWorker {
  readonly #options: Required<BackupWorkerOptions>;
  readonly #context: Context;
  readonly #work: LeasedWork;
  #timers: NodeJS.Timeout[] = [];
  #looking: Promise<void> | undefined;
  #renewing: Promise<void> | undefined;
  #stopping = false;

  constructor(options: BackupWorkerOptions) {
    this.#options = { leaseSeconds: 30, pollMs: 2000, slots: 2, ...options };
    this.#context = systemContext(options.platform);
    this.#work = new LeasedWork(this.#options.leaseSeconds);
  }

  start(): void {
    const { pollMs, leaseSeconds } = this.#options;
    this.#timers = [
      setInterval(() => this.#nudge(), pollMs),
      setInterval(() => this.#renew(), (leaseSeconds * 1000) / RENEWALS_PER_LEASE),
      setInterval(() => this.#work.watch(), WATCH_MS),
    ];
    this.#nudge();
  }

  /** Ends what is under way and gives it back. */
  async stop(): Promise<void> {
    this.#stopping = true;
    // What runs hears of it at once; what is being claimed just now, when it has been claimed.
    this.#work.abortAll('give-back');
    await Promise.all([this.#work.ended(), this.#looking]);
    this.#work.abortAll('give-back');
    await this.#work.ended();
    for (const timer of this.#timers) clearInterval(timer);
    await this.#renewing;
  }

  #nudge(): void {
    if (!this.#stopping) this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
  }

  #renew(): void {
    const { platform, leaseSeconds } = this.#options;
    this.#renewing ??= this.#work
      .renew((tokens) => queries.renewClaims(platform.db, tokens, leaseSeconds))
      .catch((error: unknown) => platform.log.warn({ err: error }, 'cannot renew the claims on backups and restores'))
      .finally(() => (this.#renewing = undefined));
  }

  async #look(): Promise<void> {
    try {
      await this.#removeFiles();
      // People wait for restores: a day's backups queue behind them.
      while ((await this.#claimRestore()) || (await this.#claimBackup()));
    } catch (error) {
      this.#options.platform.log.warn({ err: error }, 'cannot look for backups of databases');
    }
  }

  #hasSlot(): boolean {
    return !this.#stopping && this.#work.size < this.#options.slots;
  }

  async #claimBackup(): Promise<boolean> {
    if (!this.#hasSlot()) return false;
    this.#work.refresh();
    const backup = await queries.claimBackup(this.#context.db, this.#options.nodeId, this.#options.leaseSeconds);
    if (backup) this.#begin('database_backup', backup, (signal) => this.#backUp(backup, signal));
    return backup !== undefined;
  }

  async #claimRestore(): Promise<boolean> {
    if (!this.#hasSlot()) return false;
    this.#work.refresh();
    const restore = await queries.claimRestore(this.#context.db, this.#options.nodeId, this.#options.leaseSeconds);
    if (restore) this.#begin('database_restore', restore, (signal) => this.#restore(restore, signal));
    return restore !== undefined;
  }

  /** Removes a file before the row that leads to it. */
  async #removeFiles(): Promise<void> {
    const { db, settings } = this.#context;
    for (const { backup_id: backupId, organization_id: organizationId, last } of await queries.listBuriedFiles(
      db,
      this.#options.nodeId,
    )) {
      await removeBackup({ dataDir: settings.dataDir, organizationId, backupId }, last);
      await queries.removeBuriedFile(db, backupId);
    }
  }

  #begin(table: Table, claim: Claim, work: (signal: AbortSignal) => Promise<void>): void {
    void this.#work
      .begin(claim.claim_token!, ({ signal }) => this.#carryOut(table, claim, work, signal))
      .finally(() => this.#nudge());
  }

  async #carryOut(
    table: Table,
    claim: Claim,
    work: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const log = this.#options.platform.log.child({
      databaseId: claim.database_id,
      work: table,
      workId: claim.id,
    });
    try {
      await work(signal);
    } catch (error) {
      if (signal.aborted && signal.reason === 'give-back')
        await queries
          .giveBack(this.#context.db, table, claim)
          .catch((cause: unknown) => log.warn({ err: cause }, 'cannot give work back; its lease ends by itself'));
      else if (!(error instanceof ClaimLost) && !signal.aborted)
        log.warn({ err: error }, 'stopped working on a backup or restore; another attempt goes on with it');
    }
  }

  async #find(claim: Claim) {
    const scope = { organizationId: claim.organization_id };
    const database = await queries.findDatabase(this.#context.db, scope, claim.database_id);
    if (!database) throw new Error('The database is gone.');
    if (claim.attempts > queries.MOST_ATTEMPTS)
      throw new Error(`It was begun ${queries.MOST_ATTEMPTS} times and never ended.`);
    const runtime = await this.#options.runtimeOf(database);
    return serverOf(this.#context, claim.organization_id, database, runtime);
  }

  async #backUp(row: queries.BackupRow, signal: AbortSignal): Promise<void> {
    let secrets: string[] = [];
    let ended: boolean;
    try {
      // Whose part it is has made another, of the right moment.
      if (row.origin.startsWith('BEFORE_')) throw new Error('It was broken off.');
      const server = await this.#find(row);
      secrets = [server.credentials.password];
      const made = await makeFile(this.#context, row, server, signal);
      ended = await queries.endBackup(this.#context.db, row, made);
    } catch (error) {
      signal.throwIfAborted();
      ended = await failBackup(this.#context, row, reasonOf(error, secrets));
    }
    requireHeld(ended);
  }

  async #restore(row: queries.RestoreRow, signal: AbortSignal): Promise<void> {
    let secrets: string[] = [];
    let reason: string | null = null;
    try {
      const server = await this.#find(row);
      secrets = [server.credentials.password];
      const backup = await queries.findBackup(this.#context.db, [row.organization_id], row.backup_id);
      if (!backup) throw new Error('The backup was deleted.');
      const file = await fileOf(this.#context, backup);
      await verifyBackup(file);
      await this.#saveBefore(row, server, signal);
      await this.#load(row, file, server, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ClaimLost) throw error;
      reason = reasonOf(error, secrets);
    }
    requireHeld(await queries.endRestore(this.#context.db, row, reason));
  }

  #load(row: queries.RestoreRow, file: BackupFile, server: Server, signal: AbortSignal): Promise<void> {
    const { db } = this.#context;
    const restoration = {
      dump: () => readBackup(file),
      isLoaded: row.loaded_at !== null,
      // Above the generation of the release, below which runtimes take a request for an old one.
      asked: server.handle.identity.generation + row.created_at.getTime(),
      loaded: async () => requireHeld(await queries.recordProgress(db, row, { loaded_at: new Date() })),
      restarted: async (handle: Handle) => requireHeld(await queries.recordRestart(db, row, handle)),
    };
    return restoreFrom(server, restoration, signal);
  }

  /** Saves what there is before it is replaced, once for all attempts: after a first one it may be no more what it was. */
  async #saveBefore(row: queries.RestoreRow, server: Server, signal: AbortSignal) {
    if (row.safety_backup_id) return;
    const { db } = this.#context;
    const database = await findServiceById(db, [row.organization_id], row.database_id);
    const token = randomUUID();
    const leaseUntil = new Date(Date.now() + this.#options.leaseSeconds * 1000);
    const id = await addBackup(this.#context, database!, {
      name: `Before a restore of ${database!.name}`,
      message: 'What the database held before it was replaced.',
      origin: 'BEFORE_RESTORE',
      claim: { token, leaseUntil, nodeId: this.#options.nodeId },
    });
    const backup = (await queries.findBackup(db, [row.organization_id], id))!;
    try {
      if (!(await queries.endBackup(db, backup, await makeFile(this.#context, backup, server, signal))))
        throw new Error('The backup of what the database held was deleted while it was made, so nothing was replaced.');
    } catch (error) {
      await failBackup(this.#context, backup, reasonOf(error, [server.credentials.password]));
      throw error;
    }
    requireHeld(await queries.recordProgress(db, row, { safety_backup_id: id }));
  }
}
