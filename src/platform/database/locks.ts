import type { ClientBase } from 'pg';
import { sql, type Database } from '#platform/database/index.ts';

/**
 * Keys of all advisory locks. Two things with one key wait for each other without being seen: a test holds that the keys are distinct, and
 * that no other file takes an advisory lock.
 */
export const LOCKS = {
  /** Migrations, restores: one process at a time. */
  migrations: 7_301_001,
  /** Partitions of audit events and seals: one process at a time. */
  partitions: 7_301_002,
  /** Choice of work by claims that count over all workers. */
  claims: 7_301_003,
  /** Chains of audit events: one writer at a time. */
  chains: 7_301_004,
  /** Choice of executions of schedules by claims that count over all workers. */
  executions: 7_301_005,
  /** First start on an empty database. */
  firstStart: 7_301_010,
  /** Rotation of the vault's key. */
  keyRotation: 7_301_070,
} as const;

export type LockName = keyof typeof LOCKS;

/** First key of the locks that show that a worker lives; the second key is the worker's number. */
export const LIVENESS_CLASS = 7301;

/** First key of the locks under which work of one organization is claimed; the second key is a hash of its id. */
export const CLAIMING_CLASS = 7302;

/** First key of the locks of which a claim takes one before it looks; the second key is the number of a place. */
export const PLACES_CLASS = 7303;
/** Claims that look at a time, over all workers: more of them only compete for the processors of the database. */
const PLACES = 4;

/** Subject of a lock for one thing; the key is a hash of both. */
export type Subject = 'first cluster of organization' | 'argo cd project of organization' | 'previews of organization';

/** Waits for the lock and holds it until the transaction ends. */
export const lockInTransaction = (db: Database, name: LockName) =>
  sql`select pg_advisory_xact_lock(${LOCKS[name]})`.execute(db);

/** Takes the lock until the transaction ends, and returns false where another transaction has it. */
export const tryLockInTransaction = async (db: Database, name: LockName): Promise<boolean> =>
  (await sql<{ mine: boolean }>`select pg_try_advisory_xact_lock(${LOCKS[name]}) as mine`.execute(db)).rows[0]!.mine;

/**
 * Locks organizations for a claim until the transaction ends: up to `limit` that no other claim has, in the given order. Waits for the
 * first one where other claims have them all.
 */
export async function lockOrganizations(db: Database, organizations: string[], limit: number): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`select id from unnest(${organizations}::uuid[]) as id
    where pg_try_advisory_xact_lock(${CLAIMING_CLASS}, hashtext(id::text)) limit ${limit}`.execute(db);
  if (rows.length > 0) return rows.map(({ id }) => id);
  const first = organizations.slice(0, 1);
  await sql`select pg_advisory_xact_lock(${CLAIMING_CLASS}, hashtext(${first[0]!}::uuid::text))`.execute(db);
  return first;
}

/**
 * Waits for a place for claims and for a share of the lock `claims`, until the transaction ends. Some workers share a place.
 * `lockInTransaction` excludes all that share its lock.
 */
export const takePlace = (db: Database, workerId: number) =>
  sql`select pg_advisory_xact_lock(${PLACES_CLASS}, ${workerId % PLACES}), pg_advisory_xact_lock_shared(${LOCKS.claims})`.execute(
    db,
  );

/** Waits for the lock on one subject and holds it until the transaction ends. */
export const lockSubject = (db: Database, subject: Subject, id: string) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`${subject} ${id}`}, 0))`.execute(db);

/** Waits for the lock and holds it until the connection ends. The connection must be direct: a pooler would hand the lock to others. */
export const lockSession = (client: ClientBase, name: LockName) =>
  client.query('select pg_advisory_lock($1)', [LOCKS[name]]);

/** Takes the lock that shows that a worker lives, for as long as the connection does. It must be a direct connection. */
export const lockLiveness = (client: ClientBase, workerId: number) =>
  client.query('select pg_advisory_lock($1, $2)', [LIVENESS_CLASS, workerId]);

/** Name of a worker's connection, from which others know its machine and how many deployments it runs at a time. PostgreSQL keeps 63 bytes. */
export const workerName = (nodeId: string, slots: number): string => `quarterdeck worker ${nodeId} ${slots}`;

/** Live workers with their machine and slots. Both are null for a worker of an older release, whose connection does not name them. */
export const LIVE_WORKER_SLOTS = sql`select l.objid::bigint as worker, said.parts[1] as node, said.parts[2]::int as slots from pg_locks l
  left join pg_stat_activity a on a.pid = l.pid
  left join lateral regexp_match(a.application_name, '^quarterdeck worker (\\S{36}) (\\d+)$') said(parts) on true
  where l.locktype = 'advisory' and l.classid = ${sql.lit(LIVENESS_CLASS)} and l.objsubid = 2 and l.granted
    and l.database = (select oid from pg_database where datname = current_database())`;

/** Numbers of the workers whose liveness lock is held. Locks of two keys have 2 as their `objsubid`. */
export const LIVE_WORKERS = sql`select objid::bigint as worker from pg_locks
  where locktype = 'advisory' and classid = ${sql.lit(LIVENESS_CLASS)} and objsubid = 2 and granted
    and database = (select oid from pg_database where datname = current_database())`;
