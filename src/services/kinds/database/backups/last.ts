import { randomUUID } from 'node:crypto';
import type { KindHooks } from '#deployments/index.ts';
import { ClaimLost } from '#platform/work/index.ts';
import { failBackup, makeFile, reasonOf, serverOf } from '#services/kinds/database/backups/make.ts';
import { addBackup } from '#services/kinds/database/backups/new-backup.ts';
import * as queries from '#services/kinds/database/backups/queries.ts';
import type { DatabaseSpec } from '#services/kinds/database/spec.ts';
import { findServiceById } from '#services/service/queries.ts';

/**
 * Lease of the backup's own claim, in milliseconds. The deployment's lease decides who makes the backup; this one only keeps other workers
 * from starting another.
 */
const LEASE_MS = 3_600_000;

/**
 * Backs up a managed database before its volume is removed. The deployment's claim fences it: a further attempt begins the file anew.
 * Throws if the backup fails, so that nothing is removed; a best-effort teardown goes on without it.
 */
export const backUpBeforeRemoval: NonNullable<KindHooks['beforeRemoval']> = async (context, service, removal) => {
  if ((service.spec as DatabaseSpec).mode !== 'MANAGED' || !removal.handle) return;
  const { runtime, organizationId, deploymentId, log, signal } = removal;
  if (!runtime.exec) return log(`The runtime ${runtime.name} makes no backups: there is no last one.`);
  const scope = { organizationId };
  const row = await findServiceById(context.db, [organizationId], service.serviceId);
  if (!row) return;
  const present = await queries.findOfDeployment(context.db, scope, deploymentId, service.serviceId);
  if (present?.status === 'READY') return;
  const [token, leaseUntil] = [randomUUID(), new Date(Date.now() + LEASE_MS)];
  if (present) await queries.takeOver(context.db, scope, present.id, token, leaseUntil);
  const id =
    present?.id ??
    (await addBackup(context, row, {
      name: `Last backup of ${row.name}`,
      message: 'Made before the database was removed.',
      origin: 'BEFORE_DELETE',
      claim: {
        token,
        leaseUntil,
        nodeId: removal.nodeId,
        deploymentId,
      },
    }));
  const backup = { ...(await queries.findBackup(context.db, [organizationId], id))!, token };
  try {
    let handle = removal.handle;
    if (row.wanted !== 'running') {
      log('It is stopped: it is started for its last backup.');
      handle = await runtime.restart(handle, removal.generation, { signal, log });
      await runtime.progress?.(handle, { signal, log });
    }
    const server = await serverOf(context, organizationId, { ...row, handle, wanted: 'running' }, runtime);
    const made = await makeFile(context, backup, server, signal);
    await queries.endBackup(context.db, backup, made);
    log(`Saved ${made.bytes} bytes in a last backup, which is kept for ${context.settings.databaseBackupDays} days.`);
  } catch (error) {
    signal.throwIfAborted();
    const reason = error instanceof ClaimLost ? 'It was deleted while it was made.' : reasonOf(error, []);
    await failBackup(context, backup, reason);
    if (!removal.bestEffort)
      throw new Error(
        `The last backup could not be made, so nothing was removed: ${reason} Delete it with skipReconcile=true to go without.`,
        { cause: error },
      );
    log(`There is no last backup: ${reason}`);
  }
};
