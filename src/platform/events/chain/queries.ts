import { sql, type Database, type Transaction } from '#platform/database/index.ts';
import { microsOf, SIGNED_COLUMNS, type Chain, type SealPlace, type SignedEvent } from '#platform/events/chain/sign.ts';

export const hasUnsealed = async (db: Database): Promise<boolean> =>
  (await sql<{ some: boolean }>`select exists (select from audit_unsealed) as some`.execute(db)).rows[0]!.some;

/** Organizations of which events wait. */
export const listWaiting = async (db: Database): Promise<string[]> =>
  (await sql<{ id: string }>`select distinct organization_id as id from audit_unsealed`.execute(db)).rows.map(
    ({ id }) => id,
  );

export interface Waiting extends Omit<SealPlace, 'sequence'> {
  mac: Buffer | null;
}

/** Takes events out of the queue, in the order in which they are to be sealed. One that is gone already is sealed too: so it is missed. */
export const takeUnsealed = async (db: Transaction, limit: number, except: string[]): Promise<Waiting[]> =>
  (
    await sql<Waiting>`
      with taken as (
        delete from audit_unsealed where ctid = any(array(
          select ctid from audit_unsealed where organization_id <> all(${except}::uuid[]) limit ${limit})) returning *)
      select taken.organization_id as "organizationId", taken.event_id as "eventId",
        ${microsOf('taken.event_at')} as "eventAtMicros", event.mac
      from taken left join audit_event event on event.at = taken.event_at and event.id = taken.event_id
      order by taken.organization_id, taken.event_at, taken.event_id`.execute(db)
  ).rows;

export interface StoredChain extends Chain {
  mac: Buffer;
}

const selectChains = (db: Database) =>
  db
    .selectFrom('audit_chain')
    .select([
      'organization_id as organizationId',
      'sequence',
      'hash',
      'dropped_sequence as droppedSequence',
      'dropped_hash as droppedHash',
      'dropped_before as droppedBefore',
      'mac',
    ]);

export const listChains = (db: Database, organizationIds: string[]): Promise<StoredChain[]> =>
  selectChains(db)
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .execute();

/** Chains after an organization's of which something older than that may be dropped. */
export const listChainsDroppedBefore = (
  db: Database,
  before: Date,
  after: string | null,
  limit: number,
): Promise<StoredChain[]> =>
  selectChains(db)
    .where((eb) => eb.or([eb('dropped_before', 'is', null), eb('dropped_before', '<', before)]))
    .$if(after !== null, (query) => query.where('organization_id', '>', after!))
    .orderBy('organization_id')
    .limit(limit)
    .execute();

/** Returns the hash of a seal. */
export const findSealHash = async (db: Database, organizationId: string, sequence: number) =>
  (
    await db
      .selectFrom('audit_seal')
      .select('hash')
      .where('organization_id', '=', organizationId)
      .where('sequence', '=', sequence)
      .executeTakeFirst()
  )?.hash;

export const saveChain = (db: Transaction, chain: StoredChain) => {
  const values = {
    sequence: chain.sequence,
    hash: chain.hash,
    dropped_sequence: chain.droppedSequence,
    dropped_hash: chain.droppedHash,
    dropped_before: chain.droppedBefore,
    mac: chain.mac,
  };
  return db
    .insertInto('audit_chain')
    .values({ organization_id: chain.organizationId, ...values })
    .onConflict((conflict) => conflict.column('organization_id').doUpdateSet(values))
    .execute();
};

export interface Seal extends SealPlace {
  hash: Buffer;
}

/** Appends seals of any number of organizations. */
export const insertSeals = (db: Transaction, seals: Seal[], sealedAt: Date) =>
  sql`insert into audit_seal (organization_id, sequence, event_id, event_at, hash, sealed_at)
    select organization_id, sequence, event_id, 'epoch'::timestamptz + micros * interval '1 microsecond', hash, ${sealedAt}::timestamptz
    from unnest(${seals.map((seal) => seal.organizationId)}::uuid[], ${seals.map((seal) => seal.sequence)}::bigint[],
      ${seals.map((seal) => seal.eventId)}::uuid[], ${seals.map((seal) => seal.eventAtMicros)}::bigint[],
      ${seals.map((seal) => seal.hash)}::bytea[]) as t(organization_id, sequence, event_id, micros, hash)`.execute(db);

/** Returns the last of the seals at the front whose events are all older; undefined if the first is not. */
export const findLastDropped = async (db: Database, organizationId: string, before: Date) =>
  (
    await sql<{ sequence: number; hash: Buffer }>`
      select sequence, hash from audit_seal where organization_id = ${organizationId} and sequence < coalesce(
        (select min(sequence) from audit_seal where organization_id = ${organizationId} and event_at >= ${before}),
        9223372036854775807)
      order by sequence desc limit 1`.execute(db)
  ).rows[0];

/** Deletes seals that their chains dropped, so many at most; returns how many. */
export const deleteDroppedSeals = async (db: Database, limit: number): Promise<number> => {
  const { numAffectedRows } = await sql`
    delete from audit_seal seal using (
      select old.organization_id, old.sequence, old.sealed_at from audit_chain chain
      cross join lateral (select organization_id, sequence, sealed_at from audit_seal
        where organization_id = chain.organization_id and sequence <= chain.dropped_sequence limit ${limit}) old
      limit ${limit}) old
    where seal.organization_id = old.organization_id and seal.sequence = old.sequence and seal.sealed_at = old.sealed_at`.execute(
    db,
  );
  return Number(numAffectedRows ?? 0n);
};

/** Returns whether all seals of a partition were dropped by their chains. */
export const isDropped = async (db: Database, partition: string): Promise<boolean> => {
  const { rows } = await sql`select from ${sql.id(partition)} seal where not exists (select from audit_chain chain
    where chain.organization_id = seal.organization_id and chain.dropped_sequence >= seal.sequence) limit 1`.execute(
    db,
  );
  return rows.length === 0;
};

/** Seal, with its event as far as that exists. */
export interface SealedEvent {
  sequence: number;
  hash: Buffer;
  sealEventId: string;
  sealAtMicros: number;
  mac: Buffer | null;
  /** Event of the seal; null if it no longer exists. */
  event: SignedEvent | null;
}

const EVENT_COLUMNS = sql.join(SIGNED_COLUMNS.map((column) => sql.ref(`event.${column}`)));

type EventRow = Omit<SealedEvent, 'event'> & { [K in keyof SignedEvent]: SignedEvent[K] | null };

const toSealed = ({ sequence, hash, sealEventId, sealAtMicros, mac, ...event }: EventRow): SealedEvent => ({
  sequence,
  hash,
  sealEventId,
  sealAtMicros,
  mac,
  event: event.id === null ? null : (event as SignedEvent),
});

/** Seals after one, with their events. */
export const listSealed = async (db: Database, organizationId: string, after: number, limit: number) =>
  (
    await sql<EventRow>`
      select seal.sequence, seal.hash, seal.event_id as "sealEventId", ${microsOf('seal.event_at')} as "sealAtMicros",
        event.mac, ${microsOf('event.at')} as "atMicros", ${EVENT_COLUMNS}
      from audit_seal seal left join audit_event event on event.at = seal.event_at and event.id = seal.event_id
      where seal.organization_id = ${organizationId} and seal.sequence > ${after}
      order by seal.sequence limit ${limit}`.execute(db)
  ).rows.map(toSealed);

/** Events that wait for their seals, and since when (the earliest). */
export const listUnsealed = async (db: Database, organizationId: string) =>
  (
    await sql<EventRow & { waitingSince: Date }>`
      select 0 as sequence, ''::bytea as hash, waiting.event_id as "sealEventId",
        ${microsOf('waiting.event_at')} as "sealAtMicros", waiting.event_at as "waitingSince",
        event.mac, ${microsOf('event.at')} as "atMicros", ${EVENT_COLUMNS}
      from audit_unsealed waiting
      left join audit_event event on event.at = waiting.event_at and event.id = waiting.event_id
      where waiting.organization_id = ${organizationId}`.execute(db)
  ).rows.map(({ waitingSince, ...row }) => ({ ...toSealed(row), waitingSince }));

/** Counts the sealed and waiting events of an organization since a moment, and the events before it. */
export const countEvents = async (db: Database, organizationId: string, since: Date) =>
  (
    await sql<{ there: number; before: number }>`
      select count(*) filter (where at >= ${since}) as there, count(*) filter (where at < ${since}) as before
      from audit_event where organization_id = ${organizationId}`.execute(db)
  ).rows[0]!;

/** Lists events since a moment that are in no seal and wait for none. */
export const listStrays = async (db: Database, organizationId: string, since: Date, limit: number) =>
  (
    await sql<{ id: string; at: Date }>`select id, at from audit_event event
      where organization_id = ${organizationId} and at >= ${since}
        and not exists (select from audit_seal seal
          where seal.organization_id = ${organizationId} and seal.event_id = event.id and seal.event_at = event.at)
        and not exists (select from audit_unsealed waiting
          where waiting.organization_id = ${organizationId} and waiting.event_id = event.id and waiting.event_at = event.at)
      order by at, id limit ${limit}`.execute(db)
  ).rows;

/** Lists every organization that exists, or that has a chain or unsealed events. */
export const listAudited = async (db: Database): Promise<string[]> =>
  (
    await sql<{ id: string }>`select id from (
        select id from organization union select organization_id from audit_chain
        union select organization_id from audit_unsealed) as known order by id`.execute(db)
  ).rows.map(({ id }) => id);
