import { sql, type Database, type Transaction } from '#platform/database/index.ts';
import { lockInTransaction } from '#platform/database/locks.ts';
import type { Platform } from '#platform/context.ts';
import { isDropped } from '#platform/events/chain/queries.ts';
import { deleteDroppedSeals, dropFromChains } from '#platform/events/chain/retention.ts';

const MONTHS_AHEAD = 2;
const DAY_MS = 86_400_000;

/** Table with a partition for each month, and the column by which its rows lie there. */
interface Partitioned {
  table: 'audit_event' | 'audit_seal';
  column: 'at' | 'sealed_at';
}

const EVENTS: Partitioned = { table: 'audit_event', column: 'at' };
const SEALS: Partitioned = { table: 'audit_seal', column: 'sealed_at' };

/**
 * Maintains the monthly partitions of audit events and seals. Makes those of this month and the next two, moves in rows of the default
 * partition, and drops what is older than the retention. The scheduler calls it once a day and at start.
 */
export async function maintainEventPartitions(platform: Platform, signal?: AbortSignal): Promise<void> {
  const now = platform.clock.now();
  for (const partitioned of [EVENTS, SEALS])
    for (let ahead = 0; ahead <= MONTHS_AHEAD; ahead++)
      await makePartition(platform.db, partitioned, monthOf(now, ahead));
  const before = monthOf(new Date(now.getTime() - platform.settings.eventRetentionDays * DAY_MS), 0);
  await dropEvents(platform, before);
  await dropSeals(platform.db, before, signal);
}

/** Returns the first moment of the month that is `ahead` months after the date's, in UTC. */
const monthOf = (date: Date, ahead: number): Date =>
  new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + ahead, 1));

const nameOf = ({ table }: Partitioned, month: Date): string =>
  `${table}_${month.toISOString().slice(0, 7).replace('-', '_')}`;

/** Runs alone among all processes, and rather fails than holds up writers for long. */
const alone = (db: Database, work: (db: Transaction) => Promise<void>): Promise<void> =>
  db.transaction().execute(async (inside) => {
    await sql`set local lock_timeout = '3s'`.execute(inside);
    await lockInTransaction(inside, 'partitions');
    await work(inside);
  });

async function makePartition(db: Database, of: Partitioned, from: Date): Promise<void> {
  const { table, column } = of;
  const name = nameOf(of, from);
  if (await isThere(db, of, name)) return;
  const to = monthOf(from, 1);
  const rest = `${table}_default`;
  await alone(db, async (inside) => {
    if (await isThere(inside, of, name)) return;
    // A statement that was planned before the partition is there does not see the rows that move into it: sealing would take their events for
    // gone and seal that.
    await lockInTransaction(inside, 'chains');
    // A writer of a row locks the parent while it chooses the partition. Without this lock, a row whose writer chose the default before would be refused.
    await sql`lock table only ${sql.id(table)} in share row exclusive mode`.execute(inside);
    await sql`lock table ${sql.id(rest)} in access exclusive mode`.execute(inside);
    await sql`create table ${sql.id(name)} (like ${sql.id(table)} including defaults)`.execute(inside);
    await sql`with moved as (
      delete from ${sql.id(rest)} where ${sql.id(column)} >= ${from} and ${sql.id(column)} < ${to} returning *)
      insert into ${sql.id(name)} select * from moved`.execute(inside);
    await sql`alter table ${sql.id(table)} attach partition ${sql.id(name)}
      for values from (${sql.lit(from.toISOString())}) to (${sql.lit(to.toISOString())})`.execute(inside);
  });
}

/**
 * Returns whether a partition exists. Reads the table of relations: `to_regclass` would answer from this connection's cache, which is older
 * than its wait.
 */
async function isThere(db: Database, { table }: Partitioned, name: string): Promise<boolean> {
  const { rows } = await sql`select from pg_class where oid in (
    select inhrelid from pg_inherits where inhparent = ${table}::regclass) and relname = ${name}`.execute(db);
  return rows.length > 0;
}

/** Names of the partitions whose month was over at a moment. */
async function listOver(db: Database, { table }: Partitioned, before: Date): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`select relname as name from pg_inherits
    join pg_class on pg_class.oid = inhrelid
    where inhparent = ${table}::regclass and relname ~ ${`^${table}_[0-9]{4}_[0-9]{2}$`}`.execute(db);
  return rows.map((row) => row.name).filter((name) => endOf(name, table) <= before);
}

function endOf(name: string, table: string): Date {
  const [year, month] = name.slice(`${table}_`.length).split('_').map(Number);
  return new Date(Date.UTC(year!, month!, 1));
}

/** Whole months only, so that the chains have one moment from which on everything must be there. */
async function dropEvents(platform: Platform, before: Date): Promise<void> {
  const { db } = platform;
  const old = await listOver(db, EVENTS, before);
  const strays = await sql`select from audit_event_default where at < ${before} limit 1`.execute(db);
  if (old.length + strays.rows.length === 0) return;
  await dropFromChains(platform, before);
  await alone(db, async (inside) => {
    for (const name of old) await sql`drop table if exists ${sql.id(name)}`.execute(inside);
    await sql`delete from audit_event_default where at < ${before}`.execute(inside);
  });
  await forgetTargets(db, before);
}

/** Drops months of seals that no chain needs, and deletes dropped seals of other months one by one. */
async function dropSeals(db: Database, before: Date, signal: AbortSignal | undefined): Promise<void> {
  for (const name of await listOver(db, SEALS, before))
    await alone(db, async (inside) => {
      // Another process may have dropped it since it was listed.
      if ((await isThere(inside, SEALS, name)) && (await isDropped(inside, name)))
        await sql`drop table ${sql.id(name)}`.execute(inside);
    });
  await deleteDroppedSeals(db, signal);
}

/** Removes targets that no event is about any more; only ones noted before the retention can be such. */
const forgetTargets = (db: Database, before: Date) =>
  sql`delete from audit_target as target where first_at < ${before} and not exists (
    select from audit_event as event where event.organization_id = target.organization_id
      and event.target_type = target.target_type and event.target_id = target.target_id)`.execute(db);
