import { randomUUID } from 'node:crypto';
import { systemContext, type Context, type Platform } from '#platform/context.ts';
import {
  ClaimLost,
  requireHeld,
  WorkLoop,
  type ClaimRequest,
  type Lease,
  type RowClaim,
  type WorkKind,
  type WorkReport,
} from '#platform/work/index.ts';
import type { Database } from '#platform/database/index.ts';
import { BackupSender, fetchMissing } from '#services/kinds/database/backups/elsewhere.ts';
import { readBackup, removeBackup, verifyBackup, type BackupFile } from '#services/kinds/database/backups/file.ts';
import { refuseForkRestore } from '#services/kinds/database/backups/forks.ts';
import { failBackup, makeFile, reasonOf, serverOf } from '#services/kinds/database/backups/make.ts';
import { addBackup, fileOf } from '#services/kinds/database/backups/new-backup.ts';
import * as queries from '#services/kinds/database/backups/queries.ts';
import { restoreFrom, type Server } from '#services/kinds/database/backups/run.ts';
import { findServiceById } from '#services/service/queries.ts';
import type { ClusterRuntimes, Handle } from '#runtimes/runtime.ts';

export interface BackupWorkerOptions {
  platform: Platform;
  /** Id of this machine, which works on its own clusters and keeps the files that it made. */
  nodeId: string;
  runtimes: ClusterRuntimes;
  /** Seconds that a claim holds without being renewed. */
  leaseSeconds?: number;
  pollMs?: number;
  /** Backups and restores at a time. */
  slots?: number;
}

/** Claim on a backup or a restore. */
type DatabaseClaim =
  (queries.BackupClaim & { table: 'database_backup' }) | (queries.RestoreClaim & { table: 'database_restore' });

/** Maximum number of attempts that end without a result; then the backup or restore has failed. */
const MOST_ATTEMPTS = 5;

/** Metrics of backups and of restores. */
export const BACKUP_REPORTS: WorkReport[] = [
  { name: 'database-backups', status: queries.BACKUPS.status },
  { name: 'database-restores', status: queries.RESTORES.status },
];

/** Makes backups, sends them elsewhere, carries out restores and removes the files of deleted backups. Work of a killed process is begun anew. */
export class BackupWorker {
  readonly #options: Required<BackupWorkerOptions>;
  readonly #context: Context;
  readonly #loop: WorkLoop<DatabaseClaim>;
  readonly #sender: BackupSender;

  constructor(options: BackupWorkerOptions) {
    this.#options = { leaseSeconds: 30, pollMs: 2000, slots: 2, ...options };
    this.#context = systemContext(options.platform);
    this.#loop = new WorkLoop(this.#kind(), options);
    this.#sender = new BackupSender(this.#context, options.nodeId);
  }

  start(): void {
    this.#loop.start();
    this.#sender.start();
  }

  /** Aborts the work under way and releases its claims. */
  async stop(): Promise<void> {
    await Promise.all([this.#loop.stop(), this.#sender.stop()]);
  }

  /** Looks for backups and restores now. */
  nudge(): void {
    this.#loop.nudge();
  }

  #kind(): WorkKind<DatabaseClaim> {
    const { leaseSeconds, slots, pollMs } = this.#options;
    const tableOf = ({ table }: DatabaseClaim) => (table === 'database_backup' ? queries.BACKUPS : queries.RESTORES);
    return {
      name: 'database-backups-and-restores',
      leaseSeconds,
      slots,
      pollMs,
      prepare: (signal) => this.#removeFiles(signal),
      claim: claimRestoresFirst,
      renew: async (db, tokens) => [
        ...(await queries.BACKUPS.renew(db, tokens, leaseSeconds)),
        ...(await queries.RESTORES.renew(db, tokens, leaseSeconds)),
      ],
      giveBack: (db, claim, stoppedBy) => tableOf(claim).giveBack(db, claim as RowClaim, stoppedBy, leaseSeconds),
      run: (claim, lease) =>
        claim.table === 'database_backup' ? this.#backUp(claim, lease) : this.#restore(claim, lease),
      attempts: { most: MOST_ATTEMPTS, of: ({ attempts }) => attempts, giveUp: (claim) => this.#giveUp(claim) },
      fields: ({ table, id, database_id: databaseId }) => ({ table, workId: id, databaseId }),
    };
  }

  /** Removes a file before the row that leads to it. */
  async #removeFiles(signal: AbortSignal): Promise<void> {
    const { db, settings } = this.#context;
    // Those in the store are removed there first, which may take long.
    const buried = [
      ...(await queries.listBuriedFiles(db, this.#options.nodeId, false)),
      ...(settings.copiesUrl ? [] : await queries.listBuriedFiles(db, this.#options.nodeId, true)),
    ];
    for (const { backup_id: backupId, organization_id: organizationId, last } of buried) {
      if (signal.aborted) return;
      await removeBackup({ dataDir: settings.dataDir, organizationId, backupId }, last);
      await queries.removeBuriedFile(db, backupId);
    }
  }

  async #find(claim: Pick<DatabaseClaim, 'organization_id' | 'database_id'>) {
    const scope = { organizationId: claim.organization_id };
    const database = await queries.findDatabase(this.#context.db, scope, claim.database_id);
    if (!database) throw new Error('The database is gone.');
    const runtime = await this.#options.runtimes.runtimeOf({ id: database.cluster_id, runtime: database.runtime });
    return serverOf(this.#context, claim.organization_id, database, runtime);
  }

  async #backUp(row: queries.BackupClaim, lease: Lease): Promise<void> {
    let secrets: string[] = [];
    let made: Awaited<ReturnType<typeof makeFile>>;
    try {
      // Another attempt of its deployment or restore makes a new one at the right moment.
      if (row.origin.startsWith('BEFORE_')) throw new Error('It was broken off.');
      const server = await this.#find(row);
      secrets = [server.credentials.password];
      lease.hold();
      made = await makeFile(this.#context, row, server, lease.signal);
    } catch (error) {
      lease.hold();
      return requireHeld(await failBackup(this.#context, row, reasonOf(error, secrets)));
    }
    await queries.endBackup(this.#context.db, row, made);
    this.#sender.nudge();
  }

  async #restore(row: queries.RestoreClaim, lease: Lease): Promise<void> {
    let secrets: string[] = [];
    let reason: string | null = null;
    try {
      const server = await this.#find(row);
      secrets = [server.credentials.password];
      const backup = await queries.findBackup(this.#context.db, [row.organization_id], row.backup_id);
      if (!backup) throw new Error('The backup was deleted.');
      const database = await findServiceById(this.#context.db, [row.organization_id], row.database_id);
      if (!database) throw new Error('The database is gone.');
      await refuseForkRestore(this.#context, database, backup);
      const file = await fileOf(this.#context, backup);
      const removeFetched = await fetchMissing(this.#context, backup, lease.signal);
      try {
        await verifyBackup(file);
        await this.#saveBefore(row, server, lease);
        lease.hold();
        await this.#load(row, file, server, lease.signal);
      } finally {
        if (backup.node_id !== this.#options.nodeId) await removeFetched();
      }
    } catch (error) {
      lease.hold();
      if (error instanceof ClaimLost) throw error;
      reason = reasonOf(error, secrets);
    }
    await queries.endRestore(this.#context.db, row, reason);
  }

  async #giveUp({ table, ...row }: DatabaseClaim): Promise<void> {
    const reason = `It was begun ${MOST_ATTEMPTS} times and never ended.`;
    if (table === 'database_restore') await queries.endRestore(this.#context.db, row, reason);
    else requireHeld(await failBackup(this.#context, row as queries.BackupClaim, reason));
  }

  #load(row: queries.RestoreClaim, file: BackupFile, server: Server, signal: AbortSignal): Promise<void> {
    const { db } = this.#context;
    const restoration = {
      dump: () => readBackup(file),
      isLoaded: row.loaded_at !== null,
      // Runtimes ignore requests with a number below the generation of the release.
      asked: server.handle.identity.generation + row.created_at.getTime(),
      loaded: () => queries.recordProgress(db, row, { loaded_at: new Date() }),
      restarted: (handle: Handle) => queries.recordRestart(db, row, handle),
    };
    return restoreFrom(server, restoration, signal);
  }

  /**
   * Makes the safety backup before the content is replaced. All attempts share it: after the first attempt the content may have changed.
   */
  async #saveBefore(row: queries.RestoreClaim, server: Server, lease: Lease) {
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
    const backup = { ...(await queries.findBackup(db, [row.organization_id], id))!, token };
    try {
      lease.hold();
      await queries.endBackup(db, backup, await makeFile(this.#context, backup, server, lease.signal));
    } catch (error) {
      await failBackup(this.#context, backup, reasonOf(error, [server.credentials.password]));
      if (!(error instanceof ClaimLost)) throw error;
      throw new Error('The backup of what the database held was deleted while it was made, so nothing was replaced.', {
        cause: error,
      });
    }
    await queries.recordProgress(db, row, { safety_backup_id: id });
  }
}

/** Claims restores, for which people wait, before backups. */
async function claimRestoresFirst(db: Database, request: ClaimRequest): Promise<DatabaseClaim[]> {
  const restores = await queries.claimRestores(db, request);
  const limit = request.limit - restores.length;
  // Claimed restores must begin in any case; the next look meets the error again.
  const unlessClaimed = (error: unknown): [] => {
    if (restores.length === 0) throw error;
    return [];
  };
  const backups = limit > 0 ? await queries.claimBackups(db, { ...request, limit }).catch(unlessClaimed) : [];
  return [
    ...restores.map((claim) => ({ ...claim, table: 'database_restore' as const })),
    ...backups.map((claim) => ({ ...claim, table: 'database_backup' as const })),
  ];
}
