import { sql, type Database, type Transaction } from '#platform/database/index.ts';
import type { Platform } from '#platform/context.ts';
import { dropFromChains } from '#platform/events/chain/retention.ts';

/** Any constant: it names the lock that lets one process do this at a time. */
const LOCK = 7_301_002;
const MONTHS_AHEAD = 2;
const DAY_MS = 86_400_000;

/**
 * Sees to the monthly partitions of audit events: makes those of this month and the two after it, moving into them what the
 * default partition took in meanwhile, and drops what is older than the retention. For the scheduler: once a day, and at start.
 */
export async function maintainEventPartitions(platform: Platform): Promise<void> {
  const now = platform.clock.now();
  for (let ahead = 0; ahead <= MONTHS_AHEAD; ahead++) await makePartition(platform.db, monthOf(now, ahead));
  await dropBefore(platform, monthOf(new Date(now.getTime() - platform.settings.eventRetentionDays * DAY_MS), 0));
}

/** The first moment of the month that is so many after the date's, in UTC. */
const monthOf = (date: Date, ahead: number): Date =>
  new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + ahead, 1));

const nameOf = (month: Date): string => `audit_event_${month.toISOString().slice(0, 7).replace('-', '_')}`;

/** Runs alone among all processes, and rather fails than holds up writers for long. */
const alone = (db: Database, work: (db: Transaction) => Promise<void>): Promise<void> =>
  db.transaction().execute(async (inside) => {
    await sql`set local lock_timeout = '3s'`.execute(inside);
    await sql`select pg_advisory_xact_lock(${LOCK})`.execute(inside);
    await work(inside);
  });

async function makePartition(db: Database, from: Date): Promise<void> {
  const name = nameOf(from);
  if (await isThere(db, name)) return;
  const to = monthOf(from, 1);
  await alone(db, async (inside) => {
    if (await isThere(inside, name)) return;
    // Whoever writes an event holds the parent while it chooses the partition: one that had chosen the default before us would find its row refused.
    await sql`lock table only audit_event in share row exclusive mode`.execute(inside);
    await sql`lock table audit_event_default in access exclusive mode`.execute(inside);
    await sql`create table ${sql.id(name)} (like audit_event including defaults)`.execute(inside);
    await sql`with moved as (delete from audit_event_default where at >= ${from} and at < ${to} returning *)
      insert into ${sql.id(name)} select * from moved`.execute(inside);
    await sql`alter table audit_event attach partition ${sql.id(name)}
      for values from (${sql.lit(from.toISOString())}) to (${sql.lit(to.toISOString())})`.execute(inside);
  });
}

/** Asks the table of relations: `to_regclass` would answer from this connection's cache what was so before it waited. */
async function isThere(db: Database, name: string): Promise<boolean> {
  const { rows } = await sql`select from pg_class where oid in (
    select inhrelid from pg_inherits where inhparent = 'audit_event'::regclass) and relname = ${name}`.execute(db);
  return rows.length > 0;
}

/** Whole months only, so that the chains have one moment from which on everything must be there. */
async function dropBefore(platform: Platform, before: Date): Promise<void> {
  const { db } = platform;
  const { rows } = await sql<{ name: string }>`select relname as name from pg_inherits
    join pg_class on pg_class.oid = inhrelid
    where inhparent = 'audit_event'::regclass and relname ~ '^audit_event_[0-9]{4}_[0-9]{2}$'`.execute(db);
  const old = rows.map((row) => row.name).filter((name) => endOf(name) <= before);
  const strays = await sql`select from audit_event_default where at < ${before} limit 1`.execute(db);
  if (old.length + strays.rows.length === 0) return;
  await alone(db, async (inside) => {
    await dropFromChains(inside, platform, before);
    for (const name of old) await sql`drop table if exists ${sql.id(name)}`.execute(inside);
    await sql`delete from audit_event_default where at < ${before}`.execute(inside);
  });
  await forgetTargets(db, before);
}

/** Removes targets that no event is about any more; only ones noted before the retention can be such. */
const forgetTargets = (db: Database, before: Date) =>
  sql`delete from audit_target as target where first_at < ${before} and not exists (
    select from audit_event as event where event.organization_id = target.organization_id
      and event.target_type = target.target_type and event.target_id = target.target_id)`.execute(db);

function endOf(name: string): Date {
  const [year, month] = name.slice('audit_event_'.length).split('_').map(Number);
  return new Date(Date.UTC(year!, month!, 1));
}
