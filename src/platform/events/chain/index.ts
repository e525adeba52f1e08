import type { Platform } from '#platform/context.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { listAudited } from '#platform/events/chain/queries.ts';
import { verifyChain, type Verified } from '#platform/events/chain/verify.ts';
import { readWitness } from '#platform/events/chain/witness.ts';

export { AuditSealer } from '#platform/events/chain/sealer.ts';
export type { Finding, Verified } from '#platform/events/chain/verify.ts';
export { Witness } from '#platform/events/chain/witness.ts';

/**
 * Compares the audit events with what was signed and sealed: of one organization or of all, one after the other. Changes nothing; the
 * service may run meanwhile.
 */
export async function* verifyAudit(
  platform: Pick<Platform, 'db' | 'vault' | 'clock' | 'settings'>,
  organizationId?: string,
): AsyncGenerator<Verified> {
  const { epoch, audited_since } = await platform.db
    .selectFrom('installation')
    .select(['epoch', 'audited_since'])
    .executeTakeFirstOrThrow();
  // What was noted before a restore is of another line of events.
  const noted = new Map(
    readWitness(platform.settings.dataDir)
      .filter((head) => head.epoch === epoch)
      .map((head) => [head.organizationId, head]),
  );
  const ids = organizationId
    ? [organizationId]
    : [...new Set([...(await listAudited(platform.db)), ...noted.keys()])].sort();
  for (const id of ids)
    yield await inOneState(platform.db, (db) => verifyChain(platform, db, id, audited_since, noted.get(id)));
}

/** Reads everything as it was at one moment. */
const inOneState = <T>(db: Database, work: (db: Database) => Promise<T>): Promise<T> =>
  db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (inside) => {
      // Comparing may take longer between two statements than others may be idle.
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(inside);
      return work(inside);
    });
