import { storable } from '#kernel/storable.ts';
import { sql, type Database } from '#platform/database/index.ts';

/** Record of resources outside the database that a deleted row leaves behind (migrations/0075_tombstone.sql). */
export interface Tombstone {
  id: number;
  kind: 'SERVICE' | 'IMAGE' | 'ENVIRONMENT';
  organization_id: string;
  project_id: string;
  environment_id: string;
  /** Null for an environment. */
  service_id: string | null;
  /** Only of an image. */
  image: string | null;
  runtime: string;
  /** Null for leftovers of an earlier release. */
  cluster_id: string | null;
  number: number;
  attempts: number;
}

/** Seconds until the second attempt; each further one waits twice as long, at most MAX_WAIT. */
const FIRST_WAIT = 30;
const MAX_WAIT = 6 * 3600;

/**
 * Takes the due tombstones of this machine, oldest first, and postpones their next attempt. They are retried if this process dies.
 * Tombstones younger than `graceSeconds` wait: a worker that lost its claim may still be creating something.
 */
export const takeTombstones = async (
  db: Database,
  from: { nodeId: string; graceSeconds: number; limit: number },
): Promise<Tombstone[]> => {
  const { rows } = await sql<Tombstone>`
    update tombstone set attempts = attempts + 1,
      next_at = now() + make_interval(secs => least(${MAX_WAIT}, ${FIRST_WAIT} * 2 ^ least(attempts, 20)))
    where id in (
      select id from tombstone
      where kind <> 'DEPLOYMENT' and next_at <= now() and created_at <= now() - make_interval(secs => ${from.graceSeconds})
        and (node_id is null or node_id = ${from.nodeId})
      order by next_at, id limit ${from.limit} for update skip locked
    )
    returning id, kind, organization_id, project_id, environment_id, service_id, image, runtime, cluster_id, number, attempts`.execute(
    db,
  );
  return rows.toSorted((one, other) => one.id - other.id);
};

export const removeTombstone = (db: Database, id: number) => db.deleteFrom('tombstone').where('id', '=', id).execute();

export const noteFailure = (db: Database, id: number, message: string) =>
  db
    .updateTable('tombstone')
    .set({ last_error: storable(message) })
    .where('id', '=', id)
    .execute();

/** Postpones a tombstone that cannot be processed yet. This does not count as an attempt. */
export const postpone = (db: Database, id: number, seconds: number) =>
  db
    .updateTable('tombstone')
    .set({ attempts: sql`attempts - 1`, next_at: sql`now() + make_interval(secs => ${seconds})` })
    .where('id', '=', id)
    .execute();

/** Lets all tombstones be taken now, also those that wait for another attempt. */
export const makeAllDue = (db: Database) =>
  db
    .updateTable('tombstone')
    .set({ next_at: sql`now()` })
    .execute();

/** Tombstone that is not worked off, with what its last attempt said. */
export interface OpenTombstone {
  kind: string;
  runtime: string;
  environment_id: string;
  service_id: string | null;
  last_error: string | null;
}

/** Lists the tombstones of all machines that are not worked off, oldest first. */
export const listOpenTombstones = (db: Database): Promise<OpenTombstone[]> =>
  db
    .selectFrom('tombstone')
    .select(['kind', 'runtime', 'environment_id', 'service_id', 'last_error'])
    .where('kind', '<>', 'DEPLOYMENT')
    .orderBy('id')
    .execute();

/** State of a tombstone's resource in the database, read right before the resource is removed. */
export interface Present {
  environment: boolean;
  service: boolean;
  /** A release names the image. */
  released: boolean;
  /** A deployment of the service has not ended: it may be about to use the image. */
  busy: boolean;
  /** A deployment of the environment has not ended: it may be about to use what its services share. */
  environmentBusy: boolean;
  /** Services of the environment that are not collected yet. */
  siblings: boolean;
}

export const findPresent = async (db: Database, tombstone: Tombstone): Promise<Present> => {
  const { environment_id, service_id, image } = tombstone;
  const { rows } = await sql<Present>`select
    exists (select from environment where id = ${environment_id}) as environment,
    exists (select from service where id = ${service_id}) as service,
    exists (select from release where service_id = ${service_id} and image = ${image}) as released,
    exists (select from deployment d join deployment_service s on s.deployment_id = d.id
      where d.status <> 'ENDED' and d.environment_id = ${environment_id} and s.service_id = ${service_id}) as busy,
    exists (select from deployment where environment_id = ${environment_id} and status <> 'ENDED') as "environmentBusy",
    exists (select from tombstone where environment_id = ${environment_id} and kind = 'SERVICE') as siblings`.execute(
    db,
  );
  return rows[0]!;
};

/** Deletes the tombstones that triggers wrote in this transaction (a restore), because they may name resources in use. */
export const keepOlderTombstones = (db: Database) =>
  db
    .deleteFrom('tombstone')
    .where('created_at', '=', sql<Date>`now()`)
    .execute();
