import { sql, type Database } from '#platform/database/index.ts';

/** SQLSTATE of what is refused because the installation is read-only (migrations/0070_restore.sql). */
export const READ_ONLY_CODE = 'QD001';

const TRIGGER = 'refuse_while_read_only';

/** Tables that are written in the read-only state: people, machines, sessions, uses of passkeys, request counts, positions of streams, and the state itself. */
const STILL_WRITTEN = [
  'installation',
  'node',
  'passkey',
  'passkey_challenge',
  'rate_window',
  'schema_migration',
  'sign_in_attempt',
  'sign_in_session',
  'stream_event',
  'stream_state',
  'user_account',
];

export interface InstallationState {
  id: string;
  /** Epoch, raised by each restore and each failover of the database: resources made under a lower one never overwrite those of a higher one. */
  epoch: number;
  /** Start of the read-only state; null in ordinary times. */
  readOnlySince: Date | null;
  restoredAt: Date | null;
  /** Time of the backup that the database was last restored from. */
  restoredFrom: Date | null;
}

export async function readInstallation(db: Database): Promise<InstallationState> {
  // Named one by one: a statement for all columns fails on connections of before a migration that adds one.
  const row = await db
    .selectFrom('installation')
    .select(['id', 'epoch', 'read_only_since', 'restored_at', 'restored_from'])
    .executeTakeFirstOrThrow();
  return {
    id: row.id,
    epoch: row.epoch,
    readOnlySince: row.read_only_since,
    restoredAt: row.restored_at,
    restoredFrom: row.restored_from,
  };
}

/** Id of the operator's own organization, for statements that ask for it with other rows; null once it is gone. */
export const FIRST_ORGANIZATION = sql<string | null>`(select first_organization_id from installation)`;

/** Returns whether an organization is the operator's own, made at the first start. */
export async function isFirstOrganization(db: Database, organizationId: string): Promise<boolean> {
  const row = await db.selectFrom('installation').select('first_organization_id').executeTakeFirstOrThrow();
  return row.first_organization_id === organizationId;
}

/** Records the first organization of the installation; every later one changes nothing. */
export const recordOrganization = (db: Database, organizationId: string) =>
  db
    .updateTable('installation')
    .set({ first_organization_id: organizationId })
    .where('first_organization_id', 'is', null)
    .execute();

/**
 * The installation after a restore: a higher epoch, and read-only. Each table refuses writes by itself, so that a process that knows
 * nothing of the restore cannot write either. Call it in a transaction, as the last that it writes.
 */
export async function enterReadOnly(db: Database, restoredFrom: Date): Promise<void> {
  await db
    .updateTable('installation')
    .set({
      epoch: sql`epoch + 1`,
      timeline: sql`current_timeline()`,
      read_only_since: sql`now()`,
      restored_at: sql`now()`,
      restored_from: restoredFrom,
    })
    .execute();
  const { rows } = await sql<{ name: string }>`
    select c.relname::text as name from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname <> all(${STILL_WRITTEN})
      and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
    order by 1`.execute(db);
  for (const { name } of rows)
    await sql`create trigger ${sql.id(TRIGGER)} before insert or update or delete or truncate on ${sql.id(name)}
      for each statement execute function ${sql.id(TRIGGER)}()`.execute(db);
}

/** Ends the read-only state; from the commit on everything may be written. `epoch` raises the installation's where that is lower. */
export const leaveReadOnly = (db: Database, epoch: number) =>
  db
    .updateTable('installation')
    .set({ read_only_since: null, epoch: sql`greatest(epoch, ${epoch})` })
    .execute();

/**
 * Drops the triggers that check on every write whether the installation is read-only. Goes table by table, so that no write waits for long.
 * To be called outside a transaction, after the state has ended; triggers that a kill leaves only cost a little time.
 */
export async function removeGuards(db: Database): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select c.relname::text as name from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where t.tgname = ${TRIGGER} and t.tgparentid = 0 and c.relnamespace = current_schema()::regnamespace order by 1`.execute(
    db,
  );
  for (const { name } of rows) await sql`drop trigger if exists ${sql.id(TRIGGER)} on ${sql.id(name)}`.execute(db);
}
