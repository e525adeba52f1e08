import { fetchPage } from '#platform/http/paging.ts';
import { requireMachine } from '#platform/machines/elsewhere.ts';
import { anySignal } from '#kernel/lease-signal.ts';
import { conflict, internal, invalidField, notFound, badGateway } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import type { Call } from '#platform/http/route.ts';
import { FileAnswer } from '#platform/http/file.ts';
import { access } from 'node:fs/promises';
import { fetchMissing } from '#services/kinds/database/backups/elsewhere.ts';
import { backupPath, readBackup } from '#services/kinds/database/backups/file.ts';
import { serverOf } from '#services/kinds/database/backups/make.ts';
import { addBackup, fileOf } from '#services/kinds/database/backups/new-backup.ts';
import * as queries from '#services/kinds/database/backups/queries.ts';
import { refuseForkRestore } from '#services/kinds/database/backups/forks.ts';
import { requireReadable } from '#services/kinds/database/backups/readable.ts';
import { contentsOf } from '#services/kinds/database/backups/run.ts';
import { located, type BackupTarget } from '#services/kinds/database/backups/target.ts';
import { toBackupView, toRestoreView } from '#services/kinds/database/backups/view.ts';
import type { DatabaseSpec } from '#services/kinds/database/spec.ts';
import { placeOfService, refuseDeleting } from '#services/service/service.ts';
import { clusterOf, type ServiceTarget } from '#services/service/target.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

const PAGE_SIZE = 20;
/** Timeout for a file that is fetched from the store before it is sent, in milliseconds. */
const FETCH_MS = 600_000;
/** Timeout of the look at a running server's catalog, in milliseconds: the plan waits for it. */
const LOOK_MS = 60_000;

/** A page of a database's backups, the newest first. */
export async function listBackups(
  context: Context,
  database: ServiceTarget,
  ask: { page?: number; page_size?: number; startId?: string },
) {
  const page = ask.page ?? 1;
  const size = ask.page_size ?? PAGE_SIZE;
  const query = queries.selectBackupsOf(context.db, database, database.id, ask.startId);
  return { page, page_size: size, ...(await fetchPage(context.db, query, { page, page_size: size }, toBackupView)) };
}

function refuseNotRunning(database: ServiceTarget): void {
  refuseDeleting(database);
  if (database.wanted !== 'running') throw conflict(`${database.name} is not running: deploy it first.`);
}

/** Requests a backup, which a worker makes. Throws 409 if the server does not run. */
export async function requestBackup(
  context: Context,
  database: ServiceTarget,
  input: { name: string; message: string },
) {
  refuseNotRunning(database);
  const { organizationId } = database;
  const id = await addBackup(context, database, { ...input, origin: 'MANUAL' });
  const row = await queries.findBackup(context.db, [organizationId], id);
  if (!row) throw internal(`Backup ${id} is gone within its own transaction.`);
  await audit(context, {
    organizationId,
    type: 'UPDATE',
    ...placeOfService(database),
    after: { id: database.id, name: database.name, backup: { id, name: input.name } },
  });
  return toBackupView(row);
}

/** Deletes a backup; the machine that has its file removes that. 409 while a restore reads it. */
export async function deleteBackup(context: Context, backup: BackupTarget): Promise<void> {
  if (!(await queries.deleteBackup(context.db, backup, backup.id)))
    throw conflict('A database is being restored from this backup: delete it when that has ended.');
  await tell(context, backup, 'DELETE');
}

/** Finds a backup of a database by the id in a path. Throws 404 unless it is that database's. */
export async function findOwnBackup(call: Call<ServiceTarget>, id: string): Promise<BackupTarget> {
  await queries.lockBackup(call.db, [call.target.organizationId], id);
  const row = await queries.findBackup(call.db, [call.target.organizationId], id);
  if (row?.database_id !== call.target.id) throw notFound('Backup');
  return located(row);
}

/** Returns the dump as its tools wrote it. Throws 409 while there is none; the machine that has the file answers the request. */
export async function downloadBackup(
  context: Context,
  { machineId }: Pick<ServiceNeeds, 'machineId'>,
  backup: BackupTarget,
): Promise<FileAnswer> {
  requireReady(backup);
  const file = await fileOf(context, backup);
  if (backup.node_id === machineId) await fetchMissing(context, backup, AbortSignal.timeout(FETCH_MS)).catch(unfetched);
  await access(backupPath(file)).catch((cause: unknown) => {
    requireMachine(machineId, backup.node_id);
    throw badGateway('The file of this backup is gone.', cause);
  });
  await inTransaction(context, (inside) => tell(inside, backup, 'EXPORT'));
  const name = `${backup.database_name}-${backup.created_at.toISOString().slice(0, 19)}.${backup.extension}`;
  return new FileAnswer(name.replaceAll(/[^A-Za-z0-9.-]+/g, '-'), readBackup(file));
}

function unfetched(cause: Error): never {
  throw badGateway(
    `The file of this backup is not on its machine any more, and cannot be fetched. ${cause.message}`,
    cause,
  );
}

function requireReady(backup: queries.BackupRow): void {
  if (backup.status !== 'READY')
    throw conflict(
      backup.status === 'FAILED' ? `This backup could not be made: ${backup.error}` : 'This backup is not made yet.',
    );
}

const tell = (context: Context, backup: BackupTarget, type: 'DELETE' | 'EXPORT') =>
  audit(context, {
    organizationId: backup.organizationId,
    type: type === 'EXPORT' ? 'EXPORT' : 'UPDATE',
    target: { type: 'DATABASE', id: backup.database_id, name: backup.database_name },
    project: { id: backup.project_id, name: backup.project_name },
    environment: { id: backup.environment_id, name: backup.environment_name },
    [type === 'EXPORT' ? 'after' : 'before']: { backup: { id: backup.id, name: backup.name } },
  });

/** Plans a restore: returns what it would replace, and changes nothing. Throws 400 for a backup that the database cannot read. */
export async function planRestore(call: Call<ServiceTarget>, needs: Pick<ServiceNeeds, 'runtimeOf'>, backupId: string) {
  const { target: database } = call;
  refuseNotRunning(database);
  const { organizationId } = database;
  const backup = await queries.findBackup(call.db, [organizationId], backupId);
  if (!backup) throw invalidField('backup_id', 'names no backup of this organization');
  call.require('database.backup', located(backup));
  await refuseForkRestore(call, database, backup);
  requireReady(backup);
  requireReadable(database.spec as DatabaseSpec, backup);
  const runtime = await needs.runtimeOf(clusterOf(database));
  const signal = anySignal([call.signal, AbortSignal.timeout(LOOK_MS)]);
  const replaces = await contentsOf(await serverOf(call, organizationId, database, runtime), signal).catch(
    (cause: unknown) => {
      throw cause instanceof RuntimeError ? badGateway(cause.message, cause) : cause;
    },
  );
  const id = newId();
  return inTransaction(call, async (inside) => {
    await queries.insertRestore(inside.db, {
      id,
      organization_id: organizationId,
      database_id: database.id,
      backup_id: backup.id,
      replaces,
      requested_by: call.actor.userId,
      requested_by_name: call.actor.name,
    });
    return toRestoreView(await findRestore(inside, database, id));
  });
}

export async function findRestore(context: Context, database: ServiceTarget, id: string) {
  const row = await queries.findRestore(context.db, database, database.id, id);
  if (!row) throw notFound('Restore');
  return row;
}

/**
 * Requests a planned restore, which a worker carries out. Throws 409 if it was requested already, the plan is an hour old, or another
 * restore is under way. The rights in the environment of the backup are those of the caller, who need not have planned it.
 */
export async function requestRestore(call: Call<ServiceTarget>, id: string) {
  const { target: database } = call;
  const row = await findRestore(call, database, id);
  refuseNotRunning(database);
  const backup = await queries.findBackup(call.db, [database.organizationId], row.backup_id);
  if (!backup) throw notFound('Backup');
  call.require('database.backup', located(backup));
  await refuseForkRestore(call, database, backup);
  if (!(await queries.queueRestore(call.db, database, row)))
    throw conflict(
      row.status === 'PLANNED'
        ? 'The plan is older than an hour, or another restore into this database goes on: plan it again.'
        : `This restore was requested already: it is ${row.status}. Plan another one.`,
    );
  await audit(call, {
    organizationId: database.organizationId,
    type: 'IMPORT',
    ...placeOfService(database),
    after: { id: database.id, name: database.name, restore: { id, backup_id: row.backup_id } },
  });
  return toRestoreView(await findRestore(call, database, id));
}
