import { randomUUID } from 'node:crypto';
import { systemContext, type Context, type Platform } from '#platform/context.ts';
import { verifyBackup, readBackup, removeBackup } from '#services/kinds/database/backups/file.ts';
import { failBackup, makeFile, reasonOf, serverOf } from '#services/kinds/database/backups/make.ts';
import { addBackup, fileOf } from '#services/kinds/database/backups/new-backup.ts';
import * as queries from '#services/kinds/database/backups/queries.ts';
import { restoreFrom } from '#services/kinds/database/backups/run.ts';
import { findServiceById } from '#services/service/queries.ts';
import type { Runtime } from '#runtimes/runtime.ts';

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

/** Thrown where the work is another's by now, or was deleted: what is ours stops. */
class ClaimLost extends Error {}

/**
 * Makes backups, carries out restores and removes files of backups that were deleted. What is requested stands in the database and is claimed
 * with a lease; what a killed worker left is begun anew.
 */
export class BackupWorker {
  readonly #options: Required<BackupWorkerOptions>;
  readonly #context: Context;
  readonly #abort = new AbortController();
  readonly #running = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  constructor(options: BackupWorkerOptions) {
    this.#options = { leaseSeconds: 30, pollMs: 2000, slots: 2, ...options };
    this.#context = systemContext(options.platform);
  }

  start(): void {
    this.#timer = setInterval(() => this.#nudge(), this.#options.pollMs);
    this.#nudge();
  }

  /** Ends what is under way and gives it back. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#abort.abort();
    await this.#looking;
    await Promise.all(this.#running);
  }

  #nudge(): void {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
  }

  async #look(): Promise<void> {
    const { nodeId, leaseSeconds, slots, platform } = this.#options;
    const { db } = this.#context;
    try {
      await this.#removeFiles();
      while (!this.#abort.signal.aborted && this.#running.size < slots) {
        const backup = await queries.claimBackup(db, nodeId, leaseSeconds);
        if (backup) this.#begin('database_backup', backup, (signal) => this.#backUp(backup, signal));
        const restore = await queries.claimRestore(db, nodeId, leaseSeconds);
        if (restore) this.#begin('database_restore', restore, (signal) => this.#restore(restore, signal));
        if (!backup && !restore) return;
      }
    } catch (error) {
      platform.log.warn({ err: error }, 'cannot look for backups of databases');
    }
  }

  /** The file goes first: what is left of a broken attempt is a row that leads to it. */
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
    const running = this.#carryOut(table, claim, work).finally(() => {
      this.#running.delete(running);
      if (!this.#abort.signal.aborted) this.#nudge();
    });
    this.#running.add(running);
  }

  async #carryOut(table: Table, claim: Claim, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { leaseSeconds, platform } = this.#options;
    const { db } = this.#context;
    const log = platform.log.child({ databaseId: claim.database_id, work: table, workId: claim.id });
    const lost = new AbortController();
    const renewal = setInterval(
      () =>
        void queries.renew(db, table, claim, leaseSeconds).then(
          (held) => held || lost.abort(),
          (error: unknown) => log.warn({ err: error }, 'cannot renew a claim'),
        ),
      (leaseSeconds * 1000) / 3,
    );
    try {
      await work(AbortSignal.any([lost.signal, this.#abort.signal]));
    } catch (error) {
      if (this.#abort.signal.aborted)
        await queries
          .giveBack(db, table, claim)
          .catch((cause: unknown) => log.warn({ err: cause }, 'cannot give work back; its lease ends by itself'));
      else if (!(error instanceof ClaimLost) && !lost.signal.aborted)
        log.warn({ err: error }, 'stopped working on a backup or restore; another attempt goes on with it');
    } finally {
      clearInterval(renewal);
    }
  }

  async #find(claim: Claim) {
    const scope = { organizationId: claim.organization_id };
    const database = await queries.findDatabase(this.#context.db, scope, claim.database_id);
    if (!database) throw new Error('The database is gone.');
    if (claim.attempts > queries.MOST_ATTEMPTS)
      throw new Error(`It was begun ${queries.MOST_ATTEMPTS} times and never ended.`);
    const runtime = await this.#options.runtimeOf(database);
    return { scope, database, server: await serverOf(this.#context, claim.organization_id, database, runtime) };
  }

  async #backUp(row: queries.BackupRow, signal: AbortSignal): Promise<void> {
    let secrets: string[] = [];
    let ended: boolean;
    try {
      // Whose part it is has made another, of the right moment.
      if (row.origin.startsWith('BEFORE_')) throw new Error('It was broken off.');
      const { server } = await this.#find(row);
      secrets = [server.credentials.password];
      const made = await makeFile(this.#context, row, server, signal);
      ended = await queries.endBackup(this.#context.db, row, made);
    } catch (error) {
      signal.throwIfAborted();
      ended = await failBackup(this.#context, row, reasonOf(error, secrets));
    }
    if (!ended) throw new ClaimLost();
  }

  async #restore(row: queries.RestoreRow, signal: AbortSignal): Promise<void> {
    let secrets: string[] = [];
    let reason: string | null = null;
    try {
      const { scope, database, server } = await this.#find(row);
      secrets = [server.credentials.password];
      const backup = await queries.findBackup(this.#context.db, [row.organization_id], row.backup_id);
      if (!backup) throw new Error('The backup was deleted.');
      const file = await fileOf(this.#context, backup);
      await verifyBackup(file);
      await this.#saveBefore(row, server, signal);
      const handle = await restoreFrom(server, readBackup(file), signal);
      await queries.recordServiceHandle(this.#context.db, scope, database.id, handle);
    } catch (error) {
      signal.throwIfAborted();
      reason = reasonOf(error, secrets);
    }
    if (!(await queries.endRestore(this.#context.db, row, reason))) throw new ClaimLost();
  }

  /** Saves what there is before it is replaced, once for all attempts: after a first one it may be no more what it was. */
  async #saveBefore(row: queries.RestoreRow, server: Awaited<ReturnType<typeof serverOf>>, signal: AbortSignal) {
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
      await queries.endBackup(db, backup, await makeFile(this.#context, backup, server, signal));
    } catch (error) {
      await failBackup(this.#context, backup, reasonOf(error, [server.credentials.password]));
      throw error;
    }
    await queries.recordSafetyBackup(db, row, id);
  }
}
